import type { AcquireReply, AcquireRequest, Busy, LockType } from '../../lock-backend.js';
import type { BatchedScript } from '../calls/batched-script.js';
import { keysOf, LOCK, type LockKey, refuseFailure } from '../calls/item-answer.js';
import { integerOf } from '../calls/reply-shape.js';
import { clockOf } from '../calls/script-context.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { ScriptCall } from '../connection/script-call.js';
import type { FencingTokens } from '../fencing-tokens.js';
import { announcedWriters, fairPlaces, fairQueue, fairTimeouts, fencingToken, readLease } from '../lock-keys.js';
import { type ScriptName, scripts } from '../scripts.js';

/** How the script of one lock type is called. */
interface AcquireForm {
  readonly script: ScriptName;
  readonly keys: readonly LockKey<AcquireRequest>[];
  /** What it takes beside the lease time, the highest token and the reserve. */
  readonly option?: (request: AcquireRequest) => string;
}

const fairWaitTimeout = (request: AcquireRequest) => String(request.fairWaitTimeout);
const preferWriters = (request: AcquireRequest) => (request.preferWriters ? '1' : '0');

const WRITERS: LockKey<AcquireRequest> = { of: ({ key }) => announcedWriters(key), type: 'zset' };
const READ_LEASE: LockKey<AcquireRequest> = { of: ({ key, owner }) => readLease(key, owner), type: 'string' };

export const FAIR_KEYS: readonly LockKey<{ readonly key: string }>[] = [
  LOCK,
  { of: ({ key }) => fairQueue(key), type: 'list' },
  { of: ({ key }) => fairTimeouts(key), type: 'zset' },
  { of: ({ key }) => fairPlaces(key), type: 'zset' },
];

const FORMS: Record<LockType, AcquireForm> = {
  reentrant: { script: 'acquire-reentrant', keys: [LOCK] },
  fenced: { script: 'acquire-fenced', keys: [LOCK, { of: ({ key }) => fencingToken(key), type: 'string' }] },
  fair: { script: 'acquire-fair', keys: FAIR_KEYS, option: fairWaitTimeout },
  read: { script: 'acquire-read', keys: [LOCK, READ_LEASE, WRITERS], option: preferWriters },
  write: { script: 'acquire-write', keys: [LOCK, WRITERS], option: fairWaitTimeout },
};

/** Acquisitions of one lock type, as they travel together. */
export class AcquireBatch implements BatchedScript<AcquireRequest, AcquireReply> {
  readonly script;
  readonly limited = true;
  private readonly form: AcquireForm;

  constructor(
    type: LockType,
    private readonly connection: RedisConnection,
    private readonly tokens: FencingTokens,
  ) {
    this.form = FORMS[type];
    this.script = scripts[this.form.script];
  }

  alike(one: AcquireRequest, other: AcquireRequest): boolean {
    const { option } = this.form;
    return (
      one.leaseTime === other.leaseTime &&
      one.reserve === other.reserve &&
      (option === undefined || option(one) === option(other))
    );
  }

  keys(requests: readonly AcquireRequest[]): string[] {
    const keys = keysOf(this.form.keys, requests);
    keys.unshift(clockOf(this.connection, requests[0].key));
    return keys;
  }

  args(requests: readonly AcquireRequest[]): string[] {
    const [first] = requests;
    const args = [this.tokens.seen, String(first.leaseTime), String(first.reserve)];
    if (this.form.option !== undefined) args.push(this.form.option(first));
    for (const { owner } of requests) args.push(owner);
    return args;
  }

  read(reply: unknown, index: number, request: AcquireRequest, call: ScriptCall): AcquireReply {
    const answer = this.answer(reply, index, request, call);
    return call.resent ? { ...answer, validUntil: call.validUntil } : answer;
  }

  private answer(reply: unknown, index: number, request: AcquireRequest, call: ScriptCall): AcquireReply {
    const server = this.connection.description;
    if (!Array.isArray(reply)) return this.tokens.acquired(integerOf(reply, server) + index, 0);
    const answers: readonly unknown[] = reply;
    const answer = answers[index + 1];
    refuseFailure(answer, this.form.keys, request, call, this.connection);
    if (!Array.isArray(answer)) return this.tokens.acquired(integerOf(answer, server), integerOf(answers[0], server));
    const [first, second, ...counter] = answer;
    return counter.length > 0
      ? this.tokens.acquired(integerOf(first, server), integerOf(second, server))
      : busy(first, second, server);
  }
}

export function busy(ttl: unknown, holder: unknown, server: string): Busy {
  const remaining = integerOf(ttl, server);
  return {
    acquired: false,
    remaining: remaining < 0 ? -1 : Math.max(1, Math.ceil(remaining)),
    holder: String(holder) || undefined,
  };
}
