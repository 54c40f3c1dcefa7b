import { type AcquireAllReply, type AcquireRequest, isReadWrite } from '../../lock-backend.js';
import { keysOf, LOCK, type LockKey, refuseFailure } from '../calls/item-answer.js';
import type { ScriptContext } from '../calls/script-context.js';
import { readLease } from '../lock-keys.js';
import { arrayOf, integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { busyReply, copyOf } from './acquire-reply.js';
import { TOKEN_COUNTER, WAITING_WRITERS } from './lock-type-table.js';
import { clockOf } from './token-source.js';

/**
 * Only a read/write lock has such a lease; a key that is named must be permitted, so for other types the lock itself
 * stands in.
 */
const READ_LEASE: LockKey<AcquireRequest> = {
  of: ({ key, type, owner }) => (isReadWrite(type) ? readLease(key, owner) : key),
  type: 'string',
};
const KEYS_OF_EACH: readonly LockKey<AcquireRequest>[] = [LOCK, TOKEN_COUNTER, READ_LEASE, WAITING_WRITERS];

/** The script's first number when it acquired all; otherwise it is ONE_IS_BUSY (0), or ONE_FAILED (2). */
const ALL_ACQUIRED = 1;

/** Acquires all of several locks in one step, or none. Their keys are in one slot. */
export async function acquireAll(
  requests: readonly AcquireRequest[],
  context: ScriptContext,
): Promise<AcquireAllReply> {
  const { connection, highestToken, single, replicaCheck } = context;
  if (requests.length === 0) return { acquired: true, tokens: [] };
  const [{ key, leaseTime }] = requests;
  const { reply, call } = await single.callInTime(
    scripts['acquire-all'],
    [clockOf(connection, key), ...keysOf(KEYS_OF_EACH, requests)],
    [highestToken.seen, String(leaseTime), ...requests.flatMap(argsOf)],
  );
  const server = connection.description;
  const [outcome, ...rest] = arrayOf(reply, server);
  if (integerOf(outcome, server) === ALL_ACQUIRED) {
    await replicaCheck?.confirm(call, requests);
    const all = rest.map((token) => highestToken.acquired(integerOf(token, server), 0).token);
    return { acquired: true, tokens: all, ...copyOf(call) };
  }
  const [index, ttl, holder] = rest;
  refuseFailure(ttl, KEYS_OF_EACH, requests[integerOf(index, server)], call, connection);
  return { ...busyReply(ttl, holder, server), index: integerOf(index, server), ...copyOf(call) };
}

function argsOf({ type, owner, pastWaitingWriters }: AcquireRequest): string[] {
  return [type, owner, pastWaitingWriters ? '1' : '0'];
}
