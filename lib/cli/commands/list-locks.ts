import type { ListedLock, ListedResult, ListedSynchronizer } from '../../service/lock-inspection.js';
import { EXIT, usageError } from '../command-error.js';
import { lockTable } from '../text/lock-text.js';
import { resultTable } from '../text/result-text.js';
import { synchronizerTable } from '../text/synchronizer-table.js';
import { allLocks } from './all-locks.js';
import type { CommandContext } from './command.js';

const PAGE = 100;

/** `ls`: all locks, semaphores, latches and results of single flights, or one page of them. */
export async function listLocks({ locks, options, output }: CommandContext): Promise<number> {
  const { match, cursor, count, prefix = 'lock:' } = options;
  if (cursor === undefined && count === undefined) {
    const all = await allLocks(locks, match);
    output.result({ ...all, cursor: null }, text(all, prefix, match));
    return EXIT.ok;
  }
  const page = await locks.list({ match, cursor, count: toCount(count) });
  const next = page.cursor === undefined ? 'This was the last page.' : `The next page: --cursor ${page.cursor}`;
  output.result({ ...page, cursor: page.cursor ?? null }, [...text(page, prefix, match), next]);
  return EXIT.ok;
}

interface Found {
  readonly locks: readonly ListedLock[];
  readonly synchronizers: readonly ListedSynchronizer[];
  readonly results: readonly ListedResult[];
}

function text({ locks, synchronizers, results }: Found, prefix: string, match: string | undefined): string[] {
  const others = synchronizers.length === 0 ? [] : ['', ...synchronizerTable(synchronizers)];
  const kept = results.length === 0 ? [] : ['', ...resultTable(results)];
  return [...lockLines(locks, prefix, match), ...others, ...kept];
}

function lockLines(locks: readonly ListedLock[], prefix: string, match: string | undefined): string[] {
  const where = `${match === undefined ? '' : ` that matches '${match}'`} under the prefix '${prefix}'`;
  if (locks.length === 0) return [`No lock is held${where}`];
  return [...lockTable(locks), '', locks.length === 1 ? '1 lock' : `${locks.length} locks`];
}

function toCount(text: string | undefined): number {
  if (text === undefined) return PAGE;
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && count <= 10_000) return count;
  throw usageError(`--count is '${text}'; it must be a whole number from 1 to 10,000`);
}
