import type { OwnerRef } from '../../lock-backend.js';
import { keysOf } from '../calls/item-answer.js';
import type { ScriptContext } from '../calls/script-context.js';
import { scripts } from '../scripts.js';
import { LOCK_SCRIPTS } from './lock-type-table.js';
import { publishCommand } from './publish-command.js';

/** Removes a waiter, and wakes the next one if this waiter had been woken. */
export async function removeWaiter(waiter: OwnerRef, context: ScriptContext): Promise<void> {
  const script = LOCK_SCRIPTS[waiter.type].waiters?.remove;
  if (script === undefined) return;
  const publish = await publishCommand(context, waiter.key);
  await context.single.call(scripts[script.name], keysOf(script.keys, [waiter]), [publish, waiter.owner]);
}
