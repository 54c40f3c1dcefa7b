import { setTimeout as sleep } from 'node:timers/promises';
import { toMilliseconds } from '../../engine/terms/duration.js';
import type { ListedLock, ListedSynchronizer } from '../../service/lock-inspection.js';
import type { LockService } from '../../service/lock-service.js';
import { EXIT, toCommandError } from '../command-error.js';
import type { Output } from '../output.js';
import { heldFor, lockTable } from '../text/lock-text.js';
import { printable } from '../text/printable.js';
import { synchronizerTable } from '../text/synchronizer-table.js';
import { allLocks } from './all-locks.js';
import type { CommandContext } from './command.js';

const SHORTEST_INTERVAL = 200;
const LONGEST_INTERVAL = 3_600_000;
/** The lines of a screen that show no lock: the header, an empty line, the titles, and the number of hidden locks. */
const OTHER_LINES = 5;

const HOME = '\x1b[H';
const END_OF_LINE = '\x1b[K';
const REST_OF_SCREEN = '\x1b[J';

/**
 * `watch`: shows the locks with the most waiters first, until it is interrupted. It continues through an outage, and
 * shows it.
 */
export async function watch({ locks, options, output }: CommandContext): Promise<number> {
  const interval = toMilliseconds(
    (options.interval ?? '2s') as '2s',
    '--interval',
    SHORTEST_INTERVAL,
    LONGEST_INTERVAL,
  );
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
  while (!interrupted.signal.aborted) {
    show(await readScreen(locks, options.match), output);
    if (!(await output.flush())) break;
    await sleep(interval, undefined, { signal: interrupted.signal }).catch(() => {});
  }
  if (process.stdout.isTTY) output.print('\n');
  return EXIT.ok;
}

async function readScreen(locks: LockService, match: string | undefined): Promise<string[]> {
  const time = new Date().toISOString();
  try {
    const { locks: found, synchronizers } = await allLocks(locks, match);
    const all = found.sort(byWaiting);
    const waiting = all.reduce((sum, lock) => sum + lock.waiting, 0);
    return [`${time}  ${all.length} locks held, ${waiting} callers waiting`, '', ...withinScreen(all, synchronizers)];
  } catch (error) {
    const { kind, message } = toCommandError(error);
    if (kind !== 'unavailable') throw error;
    return [`${time}  ${printable(message)}`];
  }
}

function byWaiting(one: ListedLock, other: ListedLock): number {
  return other.waiting - one.waiting || heldFor(other) - heldFor(one);
}

function withinScreen(locks: readonly ListedLock[], synchronizers: readonly ListedSynchronizer[]): string[] {
  const others = synchronizers.length === 0 ? [] : ['', ...synchronizerTable(synchronizers)];
  if (locks.length === 0) return ['No lock is held', ...others];
  const { isTTY, rows = 24 } = process.stdout;
  const room = isTTY ? Math.max(1, rows - OTHER_LINES - others.length) : locks.length;
  const more = locks.length - room;
  return [
    ...lockTable(locks.slice(0, room)),
    ...(more > 0 ? [`… and ${more} more. Use --match to narrow the list`] : []),
    ...others,
  ];
}

function show(lines: readonly string[], output: Output): void {
  const { stdout } = process;
  if (!stdout.isTTY) output.print(`${lines.join('\n')}\n\n`);
  else {
    const cut = lines.map((line) => [...line].slice(0, stdout.columns).join('') + END_OF_LINE);
    output.print(`${HOME}${cut.join('\n')}${REST_OF_SCREEN}`);
  }
}
