import type { HeldType, OwnerRef, ReleaseReply } from '../../lock-backend.js';
import type { MemberReleaseRequest } from '../../quorum/quorum-member.js';
import type { BatchedScript } from '../calls/batched-script.js';
import { keysOf, refuseFailure } from '../calls/item-answer.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { ScriptCall } from '../connection/script-call.js';
import { tokenClock } from '../lock-keys.js';
import { integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { LOCK_SCRIPTS, type LockScript } from './lock-scripts.js';

/**
 * The replies that are not a number of listeners. See scripts/includes/release-replies.lua.
 */
const NOT_HELD = -1;
const NOT_PUBLISHED = -2;
const NOT_SERVED = -3;

const UNSENT: ReleaseReply = { released: false, listeners: 0, published: false, resent: false };

/** Releases of one lock type, sent together. */
export class ReleaseBatch implements BatchedScript<MemberReleaseRequest, ReleaseReply> {
  readonly script;
  /** A late release does no harm. */
  readonly limited = false;
  readonly unsentReply = UNSENT;
  private readonly form: LockScript;

  /**
   * @param publish the command by which waiters are notified: PUBLISH or SPUBLISH
   * @param others returns how many of the clients that received the message belong to other processes; `head` is the
   *   waiter that a fair lock notified
   * @param mayNotServe called when the user may not serve the line of a lock
   */
  constructor(
    private readonly type: HeldType,
    private readonly connection: RedisConnection,
    private readonly publish: () => string,
    private readonly countOthers: (owner: OwnerRef, received: number, head: string | undefined) => number,
    private readonly mayNotServe: () => void,
  ) {
    this.form = LOCK_SCRIPTS[type].release;
    this.script = scripts[this.form.name];
  }

  alike(one: MemberReleaseRequest, other: MemberReleaseRequest): boolean {
    return one.quietly === other.quietly;
  }

  keys(requests: readonly MemberReleaseRequest[]): string[] {
    return keysOf(this.form.keys, requests);
  }

  args(requests: readonly MemberReleaseRequest[]): string[] {
    const args = [requests[0].quietly ? '' : this.publish()];
    if (this.type !== 'fair') args.push(tokenClock(this.connection, requests[0].key));
    for (const { owner } of requests) args.push(owner);
    return args;
  }

  read(reply: unknown, index: number, request: MemberReleaseRequest, call: ScriptCall): ReleaseReply {
    const answer = Array.isArray(reply) ? reply[index] : reply;
    refuseFailure(answer, this.form.keys, request, call, this.connection);
    const server = this.connection.description;
    const { resent } = call;
    const [result, detail] = Array.isArray(answer) ? answer : [answer];
    const integer = integerOf(result, server);
    const isServed = integer > NOT_SERVED;
    if (!isServed) this.mayNotServe();
    const received = isServed ? integer : NOT_SERVED - integer;
    if (received === NOT_HELD) {
      return { released: false, listeners: 0, published: false, resent, at: integerOf(detail, server) };
    }
    if (received === NOT_PUBLISHED || request.quietly)
      return { released: true, listeners: 0, published: false, resent };
    const listeners = this.countOthers(request, received, detail && String(detail));
    // A node of a cluster counts only its own clients. This process may receive the message from another node.
    return { released: true, listeners, published: received > 0 || this.connection.isCluster, resent };
  }
}
