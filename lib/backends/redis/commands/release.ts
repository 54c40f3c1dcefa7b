import type { HeldType, OwnerRef, ReleaseReply } from '../../lock-backend.js';
import type { MemberReleaseRequest } from '../../quorum/quorum-member.js';
import type { BatchedScript } from '../calls/batched-script.js';
import { keysOf, refuseFailure } from '../calls/item-answer.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { ScriptCall } from '../connection/script-call.js';
import { integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { LOCK_SCRIPTS, type LockScript } from './lock-scripts.js';

/**
 * The replies that are not a number of listeners. See scripts/includes/release-replies.lua.
 */
const NOT_HELD = -1;
const NOT_PUBLISHED = -2;

/** The scripts that want to know whether they can count all who listen outside the line. */
const SERVES_LINES: readonly string[] = ['release-reentrant', 'release-permits'];

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
   */
  constructor(
    type: HeldType,
    private readonly connection: RedisConnection,
    private readonly publish: () => string,
    private readonly countOthers: (owner: OwnerRef, received: number, head: string | undefined) => number,
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
    if (SERVES_LINES.includes(this.form.name)) args.push(this.countsAll(args[0]) ? '' : '1');
    for (const { owner } of requests) args.push(owner);
    return args;
  }

  /** Whether the server that publishes counts all who listen. A node of a cluster counts only its own clients. */
  private countsAll(publish: string): boolean {
    return publish === 'SPUBLISH' || !this.connection.isCluster;
  }

  read(reply: unknown, index: number, request: MemberReleaseRequest, call: ScriptCall): ReleaseReply {
    const answer = Array.isArray(reply) ? reply[index] : reply;
    refuseFailure(answer, this.form.keys, request, call, this.connection);
    const server = this.connection.description;
    const { resent } = call;
    const [result, detail] = Array.isArray(answer) ? answer : [answer];
    const received = integerOf(result, server);
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
