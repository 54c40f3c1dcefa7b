import type { OwnerRef } from '../../lock-backend.js';
import { keysOf } from '../calls/item-answer.js';
import type { ScriptContext } from '../calls/script-context.js';
import { arrayOf, integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { LOCK_SCRIPTS } from './lock-type-table.js';
import { publishCommand } from './publish-command.js';

/** The reply for a waiter that is still registered. */
const KEPT = 1;

/** Keeps waiters registered, with one script call for each lock. False: that waiter was no longer registered. */
export async function refreshWaiters(
  waiters: readonly OwnerRef[],
  waiterTimeout: number,
  context: ScriptContext,
): Promise<readonly boolean[]> {
  const kept = new Map<OwnerRef, boolean>();
  await Promise.all(
    groupByLock(waiters).map(async (group) => {
      const answers = await refresh(group, waiterTimeout, context);
      for (const [index, waiter] of group.entries()) kept.set(waiter, answers[index]);
    }),
  );
  return waiters.map((waiter) => kept.get(waiter) ?? false);
}

function groupByLock(waiters: readonly OwnerRef[]): OwnerRef[][] {
  const groups = new Map<string, OwnerRef[]>();
  for (const waiter of waiters) {
    const name = `${waiter.type} ${waiter.key}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [waiter]);
    else group.push(waiter);
  }
  return [...groups.values()];
}

async function refresh(
  group: readonly OwnerRef[],
  waiterTimeout: number,
  context: ScriptContext,
): Promise<readonly boolean[]> {
  const { single, connection } = context;
  const script = LOCK_SCRIPTS[group[0].type].waiters?.refresh;
  if (script === undefined) return [];
  const args = [String(waiterTimeout), ...group.map(({ owner }) => owner)];
  if (script.publishes) args.unshift(await publishCommand(context, group[0].key));
  const reply = await single.call(scripts[script.name], keysOf(script.keys, [group[0]]), args);
  const server = connection.description;
  return arrayOf(reply, server).map((answer) => integerOf(answer, server) === KEPT);
}
