import type { Acquired, AcquireReply, AcquireRequest, HeldType } from '../../lock-backend.js';
import type { BatchedScript } from '../calls/batched-script.js';
import { keysOf, refuseFailure } from '../calls/item-answer.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { ScriptCall } from '../connection/script-call.js';
import type { HighestToken } from '../highest-token.js';
import { tokenClock } from '../lock-keys.js';
import { integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { busyReply, isHeldAs } from './acquire-reply.js';
import { type AcquireScript, LOCK_SCRIPTS } from './lock-scripts.js';

/** Acquisitions of one lock type, sent together. */
export class AcquireBatch implements BatchedScript<AcquireRequest, AcquireReply> {
  readonly script;
  readonly limited = true;
  readonly unsentReply = undefined;
  private readonly form: AcquireScript;

  /** @param onAcquired is called with the call that acquired a lock, before the acquisition is answered */
  constructor(
    type: HeldType,
    private readonly connection: RedisConnection,
    private readonly highestToken: HighestToken,
    private readonly onAcquired?: (reply: Acquired, call: ScriptCall) => void,
  ) {
    this.form = LOCK_SCRIPTS[type].acquire;
    this.script = scripts[this.form.name];
  }

  alike(one: AcquireRequest, other: AcquireRequest): boolean {
    const { option } = this.form;
    return (
      one.leaseTime === other.leaseTime &&
      one.reserve === other.reserve &&
      (option === undefined || one[option] === other[option])
    );
  }

  keys(requests: readonly AcquireRequest[]): string[] {
    const keys = keysOf(this.form.keys, requests);
    keys.unshift(tokenClock(this.connection, requests[0].key));
    return keys;
  }

  args(requests: readonly AcquireRequest[]): string[] {
    const [first] = requests;
    const { option } = this.form;
    const args = [this.highestToken.seen, String(first.leaseTime), String(first.reserve)];
    if (option !== undefined) args.push(String(Number(first[option] ?? false)));
    for (const { owner } of requests) args.push(owner);
    return args;
  }

  read(reply: unknown, index: number, request: AcquireRequest, call: ScriptCall): AcquireReply {
    const answer = this.answer(reply, index, request, call);
    const read = call.resent ? { ...answer, validUntil: call.validUntil } : answer;
    if (read.acquired) this.onAcquired?.(read, call);
    return read;
  }

  /**
   * One token for all, or { reserved with each, answer, ... }: a token, { ttl, holder, held as } when busy, or
   * { token, reserved, 1 } of a fenced lock.
   */
  private answer(reply: unknown, index: number, request: AcquireRequest, call: ScriptCall): AcquireReply {
    const server = this.connection.description;
    if (!Array.isArray(reply)) {
      const firstToken = integerOf(reply, server);
      return this.highestToken.acquired(firstToken + index, 0);
    }
    const [reservedWithEach] = reply;
    const answer = reply[1 + index];
    refuseFailure(answer, this.form.keys, request, call, this.connection);
    if (!Array.isArray(answer)) {
      return this.highestToken.acquired(integerOf(answer, server), integerOf(reservedWithEach, server));
    }
    const [first, second, third] = answer;
    if (third === undefined || isHeldAs(third)) return busyReply(first, second, server, third);
    return this.highestToken.acquired(integerOf(first, server), integerOf(second, server));
  }
}
