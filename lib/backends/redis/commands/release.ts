import type { LockType, OwnerRef, ReleaseReply, ReleaseRequest } from '../../lock-backend.js';
import type { BatchedScript } from '../calls/batched-script.js';
import { keysOf, LOCK, type LockKey, refuseFailure } from '../calls/item-answer.js';
import { integerOf } from '../calls/reply-shape.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { ScriptCall } from '../connection/script-call.js';
import { readLease } from '../lock-keys.js';
import { type ScriptName, scripts } from '../scripts.js';
import { FAIR_KEYS } from './acquire.js';

interface ReleaseForm {
  readonly script: ScriptName;
  readonly keys: readonly LockKey<OwnerRef>[];
}

const PLAIN: ReleaseForm = { script: 'release-reentrant', keys: [LOCK] };

const FORMS: Record<LockType, ReleaseForm> = {
  reentrant: PLAIN,
  fenced: PLAIN,
  fair: { script: 'release-fair', keys: FAIR_KEYS },
  read: { script: 'release-read', keys: [LOCK, { of: ({ key, owner }) => readLease(key, owner), type: 'string' }] },
  write: { script: 'release-write', keys: [LOCK] },
};

/** Releases of one lock type, as they travel together. */
export class ReleaseBatch implements BatchedScript<ReleaseRequest, ReleaseReply> {
  readonly script;
  /** A release that comes late is as good as one that comes in time. */
  readonly limited = false;
  private readonly form: ReleaseForm;

  /**
   * @param publish the command by which waiters are told: PUBLISH or SPUBLISH
   * @param others how many others listen, when the server told so many; `head` is whom a fair lock told
   */
  constructor(
    type: LockType,
    private readonly connection: RedisConnection,
    private readonly publish: () => string,
    private readonly others: (holding: OwnerRef, told: number, head: string | undefined) => number,
  ) {
    this.form = FORMS[type];
    this.script = scripts[this.form.script];
  }

  alike(one: ReleaseRequest, other: ReleaseRequest): boolean {
    return one.quietly === other.quietly;
  }

  keys(holdings: readonly OwnerRef[]): string[] {
    return keysOf(this.form.keys, holdings);
  }

  args(requests: readonly ReleaseRequest[]): string[] {
    const args = [requests[0].quietly ? '' : this.publish()];
    for (const { owner } of requests) args.push(owner);
    return args;
  }

  read(reply: unknown, index: number, request: ReleaseRequest, call: ScriptCall): ReleaseReply {
    const answer = Array.isArray(reply) ? reply[index] : reply;
    refuseFailure(answer, this.form.keys, request, call, this.connection);
    const server = this.connection.description;
    const [first, second] = Array.isArray(answer) ? answer : [answer];
    const count = integerOf(first, server);
    const { resent } = call;
    if (count === NOT_THERE)
      return { released: false, listeners: 0, published: false, resent, at: integerOf(second, server) };
    if (count < 0 || request.quietly) return { released: true, listeners: 0, published: false, resent };
    const listeners = this.others(request, count, second && String(second));
    // A node of a cluster counts its own clients alone: we may hear it from another one.
    return { released: true, listeners, published: count > 0 || this.connection.isCluster, resent };
  }
}

/** −2 is: released, and nobody had to be told, or could be. */
const NOT_THERE = -1;
