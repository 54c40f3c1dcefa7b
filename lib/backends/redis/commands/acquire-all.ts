import type { AcquireAllReply, AcquireRequest } from '../../lock-backend.js';
import { integerOf, listOf } from '../calls/reply-shape.js';
import { clockOf, type ScriptContext } from '../calls/script-context.js';
import type { ScriptCall } from '../connection/script-call.js';
import { announcedWriters, fencingToken } from '../lock-keys.js';
import { scripts } from '../scripts.js';
import { busy } from './acquire.js';

/** Acquires all of several locks in one step, or none. Their keys are in one slot. */
export async function acquireAll(
  requests: readonly AcquireRequest[],
  context: ScriptContext,
): Promise<AcquireAllReply> {
  const { connection, tokens, single, replicaCheck } = context;
  if (requests.length === 0) return { acquired: true, tokens: [] };
  const keys = requests.flatMap(({ key }) => [key, fencingToken(key), announcedWriters(key)]);
  const args = requests.flatMap(({ type, owner, fairWaitTimeout, preferWriters }) => [
    type,
    owner,
    String(fairWaitTimeout),
    preferWriters ? '1' : '0',
  ]);
  const { reply, call } = await single.callInTime(
    scripts['acquire-all'],
    [clockOf(connection, requests[0].key), ...keys],
    [tokens.seen, String(requests[0].leaseTime), ...args],
  );
  const server = connection.description;
  const [acquired, ...rest] = listOf(reply, server);
  if (integerOf(acquired, server) === 1) {
    await replicaCheck?.confirm(call, requests);
    const all = rest.map((token) => tokens.acquired(integerOf(token, server), 0).token);
    return { acquired: true, tokens: all, ...copyOf(call) };
  }
  const { remaining, holder } = busy(rest[1], rest[2], server);
  return { acquired: false, index: integerOf(rest[0], server), remaining, holder, ...copyOf(call) };
}

/** What is to be known of a call that was sent twice. */
export function copyOf({ resent, validUntil }: ScriptCall): { readonly validUntil?: number } {
  return resent ? { validUntil } : {};
}
