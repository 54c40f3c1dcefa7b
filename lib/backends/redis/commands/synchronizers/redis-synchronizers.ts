import type { Subscription, Wake } from '../../../lock-backend.js';
import type {
  PermitCounts,
  RequestId,
  SynchronizerBackend,
  SynchronizerKind,
  TakenPermits,
} from '../../../synchronizer-backend.js';
import {
  type HeldPermit,
  MOST_PERMITS_SHOWN,
  type SemaphoreType,
  SHOWN_ID_DIGITS,
  type SynchronizerNote,
  type SynchronizerState,
  type SynchronizerType,
  synchronizerState,
} from '../../../synchronizer-state.js';
import type { ScriptContext } from '../../calls/script-context.js';
import { slotOf } from '../../hash-slot.js';
import { counterNote, latchChannel, permitLeases, semaphoreChannel } from '../../lock-keys.js';
import type { ReleaseChannels } from '../../pubsub/release-channels.js';
import { arrayOf } from '../../reply-shape.js';
import { DONE, SynchronizerCalls } from './synchronizer-calls.js';

/** What Redisson publishes when a latch gets its count. */
const COUNT_WAS_SET = '1';

/** Passed instead of PUBLISH or SPUBLISH, so that no message is published. */
const SILENT = '';

const NOTED_TYPES: readonly SynchronizerNote['type'][] = [
  'semaphore',
  'permit-expirable-semaphore',
  'count-down-latch',
];

/**
 * Semaphores and latches in Redis, with Redisson's layout. Each command is one script call. The port describes their
 * contract.
 */
export class RedisSynchronizers implements SynchronizerBackend {
  private readonly calls: SynchronizerCalls;

  constructor(
    context: ScriptContext,
    private readonly channels: ReleaseChannels,
  ) {
    this.calls = new SynchronizerCalls(context);
  }

  // ── Semaphores ─────────────────────────────────────────────────────────────────────────────────────────────────────

  async takePermits(key: string, groups: readonly number[], request: RequestId, initial?: number): Promise<number> {
    const { calls } = this;
    const groupsServed = (reply: unknown) => calls.integer(reply);
    const publish = initial === undefined ? SILENT : await this.publish(key);
    const args = [publish, initial ?? '', ...groups];
    return groupsServed(await calls.take('take-permits-3', [key, counterNote(key)], request, args, groupsServed));
  }

  async drainPermits(key: string, request: RequestId): Promise<number> {
    const permits = (reply: unknown) => this.calls.integer(reply);
    return permits(await this.calls.take('drain-permits-2', [key], request, [], permits));
  }

  availablePermits(key: string): Promise<number> {
    return this.getCount(key);
  }

  async addPermits(key: string, permits: number, request: RequestId, type?: SemaphoreType): Promise<void> {
    await this.add(key, permits, request, 0, type);
  }

  async addPermitsIfExists(key: string, permits: number, request: RequestId): Promise<boolean> {
    return this.calls.integer(await this.add(key, permits, request, 1)) === DONE;
  }

  private async add(
    key: string,
    permits: number,
    request: RequestId,
    onlyIfExists: 0 | 1,
    type?: SemaphoreType,
  ): Promise<unknown> {
    const args = [permits, onlyIfExists, type ?? ''];
    return this.calls.change('add-permits-3', [key, counterNote(key)], request, await this.publish(key), args);
  }

  async trySetPermits(
    key: string,
    permits: number,
    request: RequestId,
    type: SemaphoreType = 'semaphore',
  ): Promise<boolean> {
    const publish = permits > 0 ? await this.publish(key) : SILENT;
    return this.set(key, permits, request, publish, semaphoreChannel(key), String(permits), type);
  }

  // ── Permits with a lease ───────────────────────────────────────────────────────────────────────────────────────────

  async takeLeasedPermits(
    key: string,
    groups: readonly (readonly string[])[],
    leaseTime: number,
    request: RequestId,
    initial?: number,
  ): Promise<TakenPermits> {
    const { calls } = this;
    const sizes = groups.map((ids) => ids.length);
    const args = [await this.publish(key), leaseTime, initial ?? '', groups.length, ...sizes, ...groups.flat()];
    const read = (reply: unknown): TakenPermits => {
      // NO_LEASE_ENDS (-1) is the same in the script and in the port.
      const [served, remaining, missing] = arrayOf(reply, calls.server).map((part) => calls.integer(part));
      return missing === 1 ? { served, remaining, missing: true } : { served, remaining };
    };
    const keys = [key, permitLeases(key), counterNote(key)] as const;
    return read(await calls.take('take-leased-permits-4', keys, request, args, (reply) => read(reply).served));
  }

  async giveLeasedPermits(key: string, ids: readonly string[], request: RequestId): Promise<readonly boolean[]> {
    const { calls } = this;
    const keys = [key, permitLeases(key)] as const;
    return calls.flags(await calls.change('give-leased-permits-3', keys, request, await this.publish(key), ids));
  }

  async renewPermits(key: string, ids: readonly string[], leaseTime: number): Promise<readonly boolean[]> {
    const { calls } = this;
    return calls.flags(await calls.renew('renew-permits-1', [permitLeases(key)], [leaseTime, ...ids]));
  }

  async setPermits(key: string, permits: number, request: RequestId): Promise<void> {
    const keys = [key, permitLeases(key), counterNote(key)] as const;
    await this.calls.change('set-permits-4', keys, request, await this.publish(key), [permits]);
  }

  async countPermits(key: string): Promise<PermitCounts> {
    const { calls } = this;
    const reply = await calls.run('count-permits-2', [key, permitLeases(key)], [await this.publish(key)]);
    const [available, acquired] = arrayOf(reply, calls.server).map((part) => calls.integer(part));
    return { available, acquired };
  }

  // ── Latches ────────────────────────────────────────────────────────────────────────────────────────────────────────

  async trySetCount(key: string, count: number, request: RequestId): Promise<boolean> {
    const channel = latchChannel(key);
    const publish = await this.calls.publishCommand(key, channel);
    return this.set(key, count, request, publish, channel, COUNT_WAS_SET, 'count-down-latch');
  }

  async countDown(key: string, steps: number, request: RequestId): Promise<void> {
    const publish = await this.calls.publishCommand(key, latchChannel(key));
    await this.calls.change('count-down-3', [key, counterNote(key)], request, publish, [steps]);
  }

  async getCount(key: string): Promise<number> {
    return this.calls.integer(await this.calls.run('get-count-1', [key]));
  }

  async deleteLatch(key: string, request: RequestId): Promise<boolean> {
    const { calls } = this;
    const publish = await calls.publishCommand(key, latchChannel(key));
    return calls.integer(await calls.change('delete-latch-3', [key, counterNote(key)], request, publish)) === DONE;
  }

  // ── Both ───────────────────────────────────────────────────────────────────────────────────────────────────────────

  async inspect(key: string): Promise<SynchronizerState | undefined> {
    const { calls } = this;
    const keys = [key, permitLeases(key), counterNote(key)] as const;
    const reply = await calls.run('inspect-count-3', keys, [MOST_PERMITS_SHOWN, SHOWN_ID_DIGITS / 2]);
    if (reply === null || reply === undefined) return undefined;
    const [count, type, total, acquired, entries] = arrayOf(reply, calls.server);
    const held = arrayOf(entries, calls.server);
    const permits: HeldPermit[] = [];
    for (let n = 0; n < held.length; n += 2)
      permits.push({ id: String(held[n]), remaining: calls.integer(held[n + 1]) });
    const note = noteOf(String(type), String(total));
    return synchronizerState(note, calls.integer(count), calls.integer(acquired), permits);
  }

  subscribe(key: string, kind: SynchronizerKind, listener: (wake: Wake) => void): Subscription {
    const channel = kind === 'latch' ? latchChannel(key) : semaphoreChannel(key);
    return this.channels.subscribeTo(key, channel, slotOf(key) === slotOf(channel), listener);
  }

  /** Sets the permits of a semaphore or the count of a latch, unless it has some already. */
  private async set(
    key: string,
    count: number,
    request: RequestId,
    publish: string,
    channel: string,
    message: string,
    type: SynchronizerType,
  ): Promise<boolean> {
    const { calls } = this;
    const args = [count, channel, message, type];
    return (
      calls.integer(await calls.change('try-set-count-3', [key, counterNote(key)], request, publish, args)) === DONE
    );
  }

  /** The command that notifies the waiters of a semaphore. */
  private publish(key: string): Promise<string> {
    return this.calls.publishCommand(key, semaphoreChannel(key));
  }
}

/** Reads a note. Anybody may have written it. */
function noteOf(type: string, total: string): SynchronizerNote | undefined {
  const known = NOTED_TYPES.find((one) => one === type);
  return known && { type: known, total: /^\d{1,10}$/.test(total) ? Number(total) : undefined };
}
