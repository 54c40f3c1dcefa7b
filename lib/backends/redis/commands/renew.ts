import type { HeldType, RenewRequest } from '../../lock-backend.js';
import type { BatchedScript } from '../calls/batched-script.js';
import { keysOf, refuseFailure } from '../calls/item-answer.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { ScriptCall } from '../connection/script-call.js';
import { arrayOf, integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { LOCK_SCRIPTS, type LockScript } from './lock-scripts.js';

/** The reply for a renewed lock. Otherwise it is NOT_HELD (0). */
const RENEWED = 1;

/** Renewals of one lock type, sent together. */
export class RenewBatch implements BatchedScript<RenewRequest, boolean> {
  readonly script;
  readonly unsentReply = undefined;
  private readonly form: LockScript;

  /**
   * @param publish the command by which waiters are notified if a lease becomes shorter: PUBLISH or SPUBLISH
   * @param limited whether the renewals have a time limit, and make no lease shorter, because they are a standby's.
   *   Others take nothing, so they need no limit
   */
  constructor(
    type: HeldType,
    private readonly connection: RedisConnection,
    private readonly publish: () => string,
    readonly limited: boolean,
  ) {
    this.form = LOCK_SCRIPTS[type].renew;
    this.script = scripts[this.form.name];
  }

  alike(one: RenewRequest, other: RenewRequest): boolean {
    return one.leaseTime === other.leaseTime;
  }

  keys(requests: readonly RenewRequest[]): string[] {
    return keysOf(this.form.keys, requests);
  }

  args(requests: readonly RenewRequest[]): string[] {
    const args = [this.publish(), String(requests[0].leaseTime)];
    for (const { owner } of requests) args.push(owner);
    return args;
  }

  read(reply: unknown, index: number, request: RenewRequest, call: ScriptCall): boolean {
    const server = this.connection.description;
    const answers = arrayOf(reply, server);
    const [time] = answers;
    const answer = answers[1 + index];
    if (index === 0) this.connection.scripts.sampleClock(call, [request.key], integerOf(time, server));
    refuseFailure(answer, this.form.keys, request, call, this.connection);
    return integerOf(answer, server) === RENEWED;
  }
}
