import type { ExpectedHolders } from '../../lock-backend.js';
import { keysOf } from '../calls/item-answer.js';
import type { ScriptContext } from '../calls/script-context.js';
import { scripts } from '../scripts.js';
import { FAIR_KEYS, TOKEN_COUNTER } from './lock-type-table.js';
import { publishCommand } from './publish-command.js';

/**
 * Releases a lock of any type, from all owners or only from the expected ones. Returns the owners that have lost
 * it.
 */
export async function forceRelease(
  key: string,
  expected: ExpectedHolders | undefined,
  context: ScriptContext,
): Promise<readonly string[]> {
  const publish = await publishCommand(context, key);
  const keys = keysOf([...FAIR_KEYS, TOKEN_COUNTER], [{ key }]);
  const whom = expected === undefined ? ['0', ''] : ['1', String(expected.token ?? ''), ...expected.owners];
  const owners = await context.single.call(scripts['force-release-5'], keys, [publish, ...whom]);
  return Array.isArray(owners) ? owners.map(String) : [];
}
