import { CommandError, EXIT, usageError } from '../command-error.js';
import type { CommandLine } from '../command-line.js';
import { inspectionLines } from '../text/lock-text.js';
import { printable } from '../text/printable.js';
import type { CommandContext } from './command.js';
import { notLocked } from './inspect.js';

/** Refuses a release without a reason before anything is sent. @throws CommandError */
export function checkRelease({ verb, options: { yes, reason } }: CommandLine): void {
  if (verb !== 'release' || !yes || reason?.trim()) return;
  throw usageError('Nothing was released. Give the reason with --reason TEXT');
}

/** `release`: frees a lock by force. Without --yes, it only shows who holds it. */
export async function release(context: CommandContext): Promise<number> {
  const { locks, name, options, output } = context;
  const before = await locks.inspect(name);
  if (before.synchronizer !== undefined) throw notReleasable(name, before.type);
  if (!before.locked) throw notLocked(name, options.prefix);
  const document = { name, released: false, reason: options.reason, before };
  if (!options.yes) {
    if (!output.isJson) output.result(document, inspectionLines(name, before));
    output.error(new CommandError('usage', NOTHING_DONE), document);
    return EXIT.usage;
  }
  const { owners: shown, fencingToken } = before;
  const removed = await locks.removeHolders(name, { owners: shown.map(({ owner }) => owner), fencingToken });
  if (removed.length === 0) throw await nothingReleased(context);
  const owners = shown.filter(({ owner }) => removed.includes(owner));
  output.change({ ...document, released: true, removed }, [
    ...inspectionLines(name, { ...before, owners }),
    `Released by force at ${new Date().toISOString()}: ${printable(options.reason as string)}`,
    'The code that held the lock may still be running. Its signal is aborted, but code that does not listen to the signal continues.',
  ]);
  return EXIT.ok;
}

/** Why none of the shown holders has lost the lock. */
async function nothingReleased({ locks, name, options }: CommandContext): Promise<CommandError> {
  if (!(await locks.isLocked(name))) return notLocked(name, options.prefix);
  return new CommandError('failure', `'${name}' is now held by somebody else. Nothing was released`);
}

function notReleasable(name: string, type: string): CommandError {
  const advice = type === 'permit-expirable-semaphore' ? '. Its permits become available when their leases end' : '';
  return new CommandError(
    'notLocked',
    `'${name}' is not a lock but a ${type}, which cannot be released by force${advice}`,
  );
}

const NOTHING_DONE =
  "Nothing was released. The holder's code may still be running. If the holder is dead or can do no harm, add --yes --reason TEXT";
