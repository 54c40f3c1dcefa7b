import { keysOf } from '../calls/item-answer.js';
import type { ScriptContext } from '../calls/script-context.js';
import { scripts } from '../scripts.js';
import { FAIR_KEYS } from './lock-type-table.js';
import { publishCommand } from './publish-command.js';

/** Releases a lock of any type, whoever holds it. Returns the owners that it was taken from. */
export async function forceRelease(key: string, context: ScriptContext): Promise<readonly string[]> {
  const publish = await publishCommand(context, key);
  const owners = await context.single.call(scripts['force-release-4'], keysOf(FAIR_KEYS, [{ key }]), [publish]);
  return Array.isArray(owners) ? owners.map(String) : [];
}
