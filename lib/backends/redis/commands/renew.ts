import type { LockType, RenewRequest } from '../../lock-backend.js';
import type { BatchedScript } from '../calls/batched-script.js';
import { keysOf, LOCK, type LockKey, refuseFailure } from '../calls/item-answer.js';
import { integerOf, listOf } from '../calls/reply-shape.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { ScriptCall } from '../connection/script-call.js';
import { readLease } from '../lock-keys.js';
import { type ScriptName, scripts } from '../scripts.js';

interface RenewForm {
  readonly script: ScriptName;
  readonly keys: readonly LockKey<RenewRequest>[];
}

const PLAIN: RenewForm = { script: 'renew-reentrant', keys: [LOCK] };

const FORMS: Record<LockType, RenewForm> = {
  reentrant: PLAIN,
  fenced: PLAIN,
  fair: PLAIN,
  read: { script: 'renew-read', keys: [LOCK, { of: ({ key, owner }) => readLease(key, owner), type: 'string' }] },
  write: { script: 'renew-write', keys: [LOCK] },
};

/** Renewals of one lock type, as they travel together. */
export class RenewBatch implements BatchedScript<RenewRequest, boolean> {
  readonly script;
  /** It takes nothing. */
  readonly limited = false;
  private readonly form: RenewForm;

  constructor(
    type: LockType,
    private readonly connection: RedisConnection,
  ) {
    this.form = FORMS[type];
    this.script = scripts[this.form.script];
  }

  alike(one: RenewRequest, other: RenewRequest): boolean {
    return one.leaseTime === other.leaseTime;
  }

  keys(requests: readonly RenewRequest[]): string[] {
    return keysOf(this.form.keys, requests);
  }

  args(requests: readonly RenewRequest[]): string[] {
    const args = [String(requests[0].leaseTime)];
    for (const { owner } of requests) args.push(owner);
    return args;
  }

  read(reply: unknown, index: number, request: RenewRequest, call: ScriptCall): boolean {
    const server = this.connection.description;
    const [time, ...answers] = listOf(reply, server);
    if (index === 0) this.connection.sampleClock(call, [request.key], integerOf(time, server));
    refuseFailure(answers[index], this.form.keys, request, call, this.connection);
    return integerOf(answers[index], server) === 1;
  }
}
