import { type AcquireAllReply, type AcquireRequest, isReadWrite } from '../../lock-backend.js';
import type { BatchedScript } from '../calls/batched-script.js';
import { keysOf, LOCK, type LockKey, refuseFailure } from '../calls/item-answer.js';
import type { ScriptContext } from '../calls/script-context.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { ScriptCall } from '../connection/script-call.js';
import type { HighestToken } from '../highest-token.js';
import { readLease, tokenClock } from '../lock-keys.js';
import { arrayOf, integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { busyReply, copyOf } from './acquire-reply.js';
import { TOKEN_COUNTER } from './lock-scripts.js';

/**
 * Only a read/write lock has such a lease. Every key of a script needs a permission, so other types pass the lock
 * itself instead.
 */
const READ_LEASE: LockKey<AcquireRequest> = {
  of: ({ key, type, owner }) => (isReadWrite(type) ? readLease(key, owner) : key),
  type: 'string',
};
const KEYS_OF_EACH: readonly LockKey<AcquireRequest>[] = [LOCK, TOKEN_COUNTER, READ_LEASE];

/** The script's first number when it acquired all; otherwise it is ONE_IS_BUSY (0), or ONE_FAILED (2). */
const ALL_ACQUIRED = 1;

/** Re-entrant locks that one caller wants: all of them, or none. */
export interface LocksOfCaller {
  /** The first of them. */
  readonly key: string;
  readonly requests: readonly AcquireRequest[];
}

type AllAcquired = AcquireAllReply & { readonly acquired: true };

const ONLY_THE_LOCK: readonly LockKey<AcquireRequest>[] = [LOCK];

/** Requests of callers that each want several re-entrant locks, sent together. */
export class AcquireAllBatch implements BatchedScript<LocksOfCaller, AcquireAllReply> {
  readonly script = scripts['acquire-all-reentrant'];
  readonly limited = true;
  readonly unsentReply = undefined;

  /** @param onAcquired is called with the call that acquired the locks, before the acquisition is answered */
  constructor(
    private readonly connection: RedisConnection,
    private readonly highestToken: HighestToken,
    private readonly onAcquired?: (reply: AllAcquired, call: ScriptCall) => void,
  ) {}

  alike(one: LocksOfCaller, other: LocksOfCaller): boolean {
    return one.requests[0].leaseTime === other.requests[0].leaseTime;
  }

  keys(callers: readonly LocksOfCaller[]): string[] {
    const keys = [tokenClock(this.connection, callers[0].key)];
    for (const { requests } of callers) for (const { key } of requests) keys.push(key);
    return keys;
  }

  args(callers: readonly LocksOfCaller[]): string[] {
    const args = [this.highestToken.seen, String(callers[0].requests[0].leaseTime), String(callers.length)];
    for (const { requests } of callers) args.push(String(requests.length));
    for (const { requests } of callers) for (const { owner } of requests) args.push(owner);
    return args;
  }

  /** The answer of one caller: its first token, { index, ttl, holder }, or { index, { error, type of the lock } }. */
  read(reply: unknown, index: number, { requests }: LocksOfCaller, call: ScriptCall): AcquireAllReply {
    const { connection, highestToken } = this;
    const server = connection.description;
    const answer = Array.isArray(reply) ? reply[index] : reply;
    if (Array.isArray(answer)) {
      const [busy, ttl, holder] = answer;
      const at = integerOf(busy, server);
      refuseFailure([ttl], ONLY_THE_LOCK, requests[at], call, connection);
      return { ...busyReply(ttl, holder, server), index: at, ...copyOf(call) };
    }
    const first = integerOf(answer, server);
    highestToken.note(first + requests.length - 1);
    const acquired: AllAcquired = { acquired: true, tokens: requests.map((_, n) => first + n), ...copyOf(call) };
    this.onAcquired?.(acquired, call);
    return acquired;
  }
}

/** Acquires several locks of any type in one step, or none. Their keys are in one slot. */
export async function acquireAll(
  requests: readonly AcquireRequest[],
  context: ScriptContext,
): Promise<AcquireAllReply> {
  const { connection, highestToken, single, replicaCheck } = context;
  const [{ key, leaseTime }] = requests;
  const { reply, call } = await single.callInTime(
    scripts['acquire-all'],
    [tokenClock(connection, key), ...keysOf(KEYS_OF_EACH, requests)],
    [highestToken.seen, String(leaseTime), ...requests.flatMap(argsOf)],
  );
  const server = connection.description;
  const [outcome, ...rest] = arrayOf(reply, server);
  if (integerOf(outcome, server) === ALL_ACQUIRED) {
    await replicaCheck?.confirm(call, requests);
    const all = rest.map((token) => integerOf(token, server));
    for (const token of all) highestToken.note(token);
    return { acquired: true, tokens: all, ...copyOf(call) };
  }
  const [index, ttl, holder] = rest;
  refuseFailure(ttl, KEYS_OF_EACH, requests[integerOf(index, server)], call, connection);
  return { ...busyReply(ttl, holder, server), index: integerOf(index, server), ...copyOf(call) };
}

function argsOf({ type, owner, pastLine }: AcquireRequest): string[] {
  return [type, owner, pastLine ? '1' : '0'];
}
