import type { Acquired, TransferRequest } from '../../lock-backend.js';
import { keysOf } from '../calls/item-answer.js';
import type { ScriptContext } from '../calls/script-context.js';
import { arrayOf, integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { copyOf } from './acquire-reply.js';
import { LOCK_SCRIPTS } from './lock-type-table.js';
import { publishCommand } from './publish-command.js';
import { tokenSource } from './token-source.js';

/** Replaces an owner by another one in one step; undefined when it did not hold the lock. */
export async function transfer(request: TransferRequest, context: ScriptContext): Promise<Acquired | undefined> {
  const { connection, highestToken, single, replicaCheck } = context;
  const { key, type, from, to, leaseTime, reserve } = request;
  const { name, keys } = LOCK_SCRIPTS[type].transfer;
  const publish = await publishCommand(context, key);
  const { reply, call } = await single.callInTime(
    scripts[name],
    [tokenSource(connection, key, type), ...keysOf(keys, [request])],
    [highestToken.seen, String(leaseTime), String(reserve), from, to, publish],
  );
  if (reply === null) return undefined;
  const server = connection.description;
  const [token, reserved] = arrayOf(reply, server).map((part) => integerOf(part, server));
  await replicaCheck?.confirm(call, [{ key, type, owner: to }]);
  return { ...highestToken.acquired(token, reserved), ...copyOf(call) };
}
