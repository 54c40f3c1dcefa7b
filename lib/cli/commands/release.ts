import { CommandError, EXIT, usageError } from '../command-error.js';
import type { CommandLine } from '../command-line.js';
import { inspectionLines } from '../text/holder-text.js';
import { printable } from '../text/printable.js';
import type { CommandContext } from './command.js';
import { notLocked } from './inspect.js';

/** Refuses a release without a reason before anything is asked. @throws CommandError */
export function checkRelease({ verb, options: { yes, reason } }: CommandLine): void {
  if (verb !== 'release' || !yes || reason?.trim()) return;
  throw usageError('Nothing was released: say why with --reason TEXT');
}

/** `release`: frees a lock by force; without --yes it only shows who holds it. */
export async function release({ locks, name, options, output }: CommandContext): Promise<number> {
  const before = await locks.inspect(name);
  if (!before.locked) throw notLocked(name, options.prefix);
  const document = { name, released: false, reason: options.reason, before };
  if (!options.yes) {
    if (!output.isJson) output.result(document, inspectionLines(name, before));
    output.error(new CommandError('usage', NOTHING_DONE), document);
    return EXIT.usage;
  }
  if (!(await locks.forceRelease(name))) throw notLocked(name, options.prefix);
  output.change({ ...document, released: true }, [
    ...inspectionLines(name, before),
    `Released by force at ${new Date().toISOString()}: ${printable(options.reason as string)}`,
    'The code that held it may still run: its signal is aborted, but nothing stops code that does not listen to it.',
  ]);
  return EXIT.ok;
}

const NOTHING_DONE =
  'Nothing was released: add --yes --reason TEXT when the holder is dead or harmless, because its code may still run';
