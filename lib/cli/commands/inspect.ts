import { CommandError, EXIT } from '../command-error.js';
import { inspectionLines } from '../text/lock-text.js';
import { printable } from '../text/printable.js';
import { resultText } from '../text/result-text.js';
import { synchronizerLines } from '../text/synchronizer-table.js';
import type { CommandContext } from './command.js';

/** `inspect`: one lock with all of its owners. */
export async function inspect({ locks, name, options, output }: CommandContext): Promise<number> {
  const inspection = await locks.inspect(name);
  if (inspection.locked) {
    output.result({ name, ...inspection }, inspectionLines(name, inspection));
    return EXIT.ok;
  }
  const { synchronizer } = inspection;
  if (synchronizer !== undefined) {
    output.result({ name, ...inspection }, synchronizerLines(name, synchronizer));
    return EXIT.ok;
  }
  const { result } = inspection;
  if (result !== undefined) {
    output.result({ name, ...inspection }, [`${printable(name)}: not locked; ${resultText(result)}`]);
    return EXIT.ok;
  }
  output.error(notLocked(name, options.prefix), { name, ...inspection });
  return EXIT.notLocked;
}

export function notLocked(name: string, prefix = 'lock:'): CommandError {
  const hint = prefix !== '' && name.startsWith(prefix) ? `. Names are given without the prefix '${prefix}'` : '';
  return new CommandError('notLocked', `'${name}' is not locked under the prefix '${prefix}'${hint}`);
}
