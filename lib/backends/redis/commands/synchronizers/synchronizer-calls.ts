import type { BackendError } from '../../../lock-backend.js';
import { REQUEST_LIFETIME, type RequestId } from '../../../synchronizer-backend.js';
import type { ScriptContext } from '../../calls/script-context.js';
import { ServerError } from '../../connection/redis-errors.js';
import { slotOf } from '../../hash-slot.js';
import { latestRequest } from '../../lock-keys.js';
import { integerOf, unexpected } from '../../reply-shape.js';
import { type ScriptName, scripts } from '../../scripts.js';

type Argument = string | number;
type Keys = readonly [key: string, ...others: string[]];

/** The reply of a script that has succeeded. Otherwise it is 0. */
export const DONE = 1;

/** Calls the scripts of semaphores and latches. `keys[0]` is the semaphore or the latch. */
export class SynchronizerCalls {
  readonly server: string;

  constructor(private readonly context: ScriptContext) {
    this.server = context.connection.description;
  }

  /**
   * Calls a script that takes permits. It is never executed twice or too late.
   *
   * @param takenBy reads from the reply how many permits, or groups, the script took
   */
  async take(
    script: ScriptName,
    keys: Keys,
    request: RequestId,
    args: readonly Argument[],
    takenBy: (reply: unknown) => number,
  ): Promise<unknown> {
    const { session, sequence, repeated } = request;
    const all = [sequence, REQUEST_LIFETIME, repeated ? 1 : 0, ...args].map(String);
    const sent = this.context.single.callInTime(scripts[script], withRequest(keys, session), all);
    const { reply, call } = await this.answer(keys[0], sent);
    // A request that took nothing is not remembered, so a late copy of it could take permits that become available
    // later. A repetition is remembered.
    if (takenBy(reply) <= 0 && call.resent && !repeated) {
      const { validUntil } = call;
      const reason = 'the request was sent twice, because its connection broke';
      throw new ServerError(this.server, reason, 'unavailable', 'unknown', { validUntil });
    }
    return reply;
  }

  /** Calls a script that changes something and notifies waiters. It is not executed twice. */
  change(
    script: ScriptName,
    keys: Keys,
    { session, sequence }: RequestId,
    publish: string,
    args: readonly Argument[] = [],
  ): Promise<unknown> {
    return this.run(script, withRequest(keys, session), [publish, sequence, REQUEST_LIFETIME, ...args]);
  }

  /** Calls a script that may be executed twice. */
  run(script: ScriptName, keys: Keys, args: readonly Argument[] = []): Promise<unknown> {
    return this.answer(keys[0], this.context.single.call(scripts[script], keys, args.map(String)));
  }

  /** Calls a script that renews. Its first argument is the time limit of a standby's renewals. */
  async renew(script: ScriptName, keys: Keys, args: readonly Argument[]): Promise<unknown> {
    if (!this.context.standby) return this.run(script, keys, ['', ...args]);
    const sent = this.context.single.callInTime(scripts[script], keys, args.map(String));
    return (await this.answer(keys[0], sent)).reply;
  }

  /** A sharded channel must be in the slot of the key. The channel of a latch whose name has braces is not. */
  async publishCommand(key: string, channel: string): Promise<string> {
    const command = await this.context.publishMode.command(key);
    return command === 'SPUBLISH' && slotOf(key) !== slotOf(channel) ? 'PUBLISH' : command;
  }

  integer(reply: unknown): number {
    return integerOf(reply, this.server);
  }

  /** '101' → true, false, true */
  flags(digits: unknown): boolean[] {
    if (typeof digits !== 'string' || !/^[01]*$/.test(digits)) throw unexpected(digits, this.server);
    return [...digits].map((digit) => digit === '1');
  }

  private async answer<T>(key: string, sent: Promise<T>): Promise<T> {
    try {
      return await sent;
    } catch (error) {
      const { message } = error as BackendError;
      if (!message.includes('not an integer')) throw error;
      const remedy = 'Choose another name or keyPrefix, because something else uses this key';
      throw new ServerError(this.server, `${key} holds no number. ${remedy}`, 'key', 'refused');
    }
  }
}

function withRequest(keys: Keys, session: string): Keys {
  return [...keys, latestRequest(keys[0], session)];
}
