import { BackendError, type Subscription, type Wake } from '../../lock-backend.js';
import {
  type PermitCounts,
  REQUEST_LIFETIME,
  type RequestId,
  type SynchronizerBackend,
  type SynchronizerKind,
  type TakenPermits,
} from '../../synchronizer-backend.js';
import { integerOf, listOf, unexpected } from '../calls/reply-shape.js';
import type { ScriptContext } from '../calls/script-context.js';
import { errorCode } from '../connection/redis-errors.js';
import { slotOf } from '../hash-slot.js';
import { latchChannel, latestRequest, permitLeases, semaphoreChannel } from '../lock-keys.js';
import type { ReleaseChannels } from '../pubsub/release-channels.js';
import { type ScriptName, scripts } from '../scripts.js';

type Argument = string | number;

/** Semaphores and latches in Redis, on Redisson's layout. Each command is one script call. */
export class RedisSynchronizers implements SynchronizerBackend {
  constructor(
    private readonly context: ScriptContext,
    private readonly channels: ReleaseChannels,
  ) {}

  async takePermits(key: string, groups: readonly number[], request: RequestId): Promise<number> {
    return this.take('semaphore-take-2', [key], request, groups, (reply) => this.integer(reply));
  }

  async drainPermits(key: string, request: RequestId): Promise<number> {
    return this.take('semaphore-drain-2', [key], request, [], (reply) => this.integer(reply));
  }

  async availablePermits(key: string): Promise<number> {
    return this.integer(await this.run('counter-1', [key], []));
  }

  async addPermits(key: string, permits: number, request: RequestId): Promise<void> {
    await this.change('semaphore-add-2', [key], request, [permits, 0]);
  }

  async addPermitsIfExists(key: string, permits: number, request: RequestId): Promise<boolean> {
    return this.integer(await this.change('semaphore-add-2', [key], request, [permits, 1])) === 1;
  }

  async trySetPermits(key: string, permits: number, request: RequestId): Promise<boolean> {
    return this.integer(await this.change('semaphore-set-2', [key], request, [permits])) === 1;
  }

  async takeLeasedPermits(
    key: string,
    groups: readonly (readonly string[])[],
    leaseTime: number,
    request: RequestId,
  ): Promise<TakenPermits> {
    const sizes = groups.map((ids) => ids.length);
    const publish = await this.publishCommand(key, semaphoreChannel(key));
    const args = [publish, leaseTime, groups.length, ...sizes, ...groups.flat()];
    let remaining = -1;
    const served = await this.take('permit-take-3', [key, permitLeases(key)], request, args, (reply) => {
      const [groupsServed, time] = this.integers(reply);
      remaining = time;
      return groupsServed;
    });
    return { served, remaining };
  }

  async giveLeasedPermits(key: string, ids: readonly string[], request: RequestId): Promise<readonly boolean[]> {
    return this.flags(await this.change('permit-give-3', [key, permitLeases(key)], request, ids));
  }

  async renewPermits(key: string, ids: readonly string[], leaseTime: number): Promise<readonly boolean[]> {
    return this.flags(await this.run('permit-renew-1', [permitLeases(key)], [leaseTime, ...ids]));
  }

  async setPermits(key: string, permits: number, request: RequestId): Promise<void> {
    await this.change('permit-set-3', [key, permitLeases(key)], request, [permits]);
  }

  async countPermits(key: string): Promise<PermitCounts> {
    const publish = await this.publishCommand(key, semaphoreChannel(key));
    const reply = await this.run('permit-count-2', [key, permitLeases(key)], [publish]);
    const [available, acquired] = this.integers(reply);
    return { available, acquired };
  }

  async trySetCount(key: string, count: number, request: RequestId): Promise<boolean> {
    return this.integer(await this.change('latch-set-2', [key], request, [count], latchChannel(key))) === 1;
  }

  async countDown(key: string, steps: number, request: RequestId): Promise<void> {
    await this.change('latch-down-2', [key], request, [steps], latchChannel(key));
  }

  async getCount(key: string): Promise<number> {
    return this.integer(await this.run('counter-1', [key], []));
  }

  async deleteLatch(key: string, request: RequestId): Promise<boolean> {
    return this.integer(await this.change('latch-delete-2', [key], request, [], latchChannel(key))) === 1;
  }

  subscribe(key: string, kind: SynchronizerKind, listener: (wake: Wake) => void): Subscription {
    const channel = kind === 'latch' ? latchChannel(key) : semaphoreChannel(key);
    return this.channels.subscribeTo(channel, sameSlot(key, channel), listener);
  }

  /** A script that takes permits: it is executed neither twice nor late. */
  private async take(
    script: ScriptName,
    keys: readonly [key: string, ...others: string[]],
    { session, sequence, repeated }: RequestId,
    args: readonly Argument[],
    read: (reply: unknown) => number,
  ): Promise<number> {
    const { single, connection } = this.context;
    const all = [sequence, REQUEST_LIFETIME, repeated ? 1 : 0, ...args].map(String);
    const sent = single.callInTime(scripts[script], [...keys, latestRequest(keys[0], session)], all);
    const { reply, call } = await this.answer(keys[0], sent);
    const taken = read(reply);
    // A vain request is not remembered, so that another copy of it may take what comes meanwhile: it is asked once more, to be remembered.
    if (taken === 0 && call.resent && !repeated) {
      const { validUntil } = call;
      const message = `${connection.description}: the request was sent twice, as its connection broke`;
      throw new BackendError(message, 'unavailable', 'unknown', { validUntil });
    }
    return taken;
  }

  /** A script that tells who waits, and is not executed twice. */
  private async change(
    script: ScriptName,
    keys: readonly [key: string, ...others: string[]],
    { session, sequence }: RequestId,
    args: readonly Argument[],
    channel = semaphoreChannel(keys[0]),
  ): Promise<unknown> {
    const publish = await this.publishCommand(keys[0], channel);
    return this.run(script, [...keys, latestRequest(keys[0], session)], [publish, sequence, REQUEST_LIFETIME, ...args]);
  }

  /** A sharded channel must be in the object's slot: that of a latch whose name has braces of its own is not. */
  private async publishCommand(key: string, channel: string): Promise<string> {
    const { publishMode } = this.context;
    const command = publishMode.known ?? (await publishMode.ask());
    return command === 'SPUBLISH' && !sameSlot(key, channel) ? 'PUBLISH' : command;
  }

  private run(script: ScriptName, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.answer(keys[0], this.context.single.call(scripts[script], keys, args.map(String)));
  }

  private async answer<T>(key: string, sent: Promise<T>): Promise<T> {
    const { connection } = this.context;
    try {
      return await sent;
    } catch (error) {
      const { message } = error as BackendError;
      if (errorCode(message) === 'READONLY') connection.leaveReplica();
      if (!message.includes('not an integer')) throw error;
      const remedy = 'Choose another name or keyPrefix, or delete that key';
      throw new BackendError(`${connection.description}: ${key} holds no number. ${remedy}`, 'key', 'refused');
    }
  }

  /** '101' → true, false, true */
  private flags(digits: unknown): boolean[] {
    if (typeof digits !== 'string' || !/^[01]*$/.test(digits))
      throw unexpected(digits, this.context.connection.description);
    return [...digits].map((digit) => digit === '1');
  }

  private integer(reply: unknown): number {
    return integerOf(reply, this.context.connection.description);
  }

  private integers(reply: unknown): number[] {
    return listOf(reply, this.context.connection.description).map((part) => this.integer(part));
  }
}

function sameSlot(key: string, channel: string): boolean {
  return slotOf(key) === slotOf(channel);
}
