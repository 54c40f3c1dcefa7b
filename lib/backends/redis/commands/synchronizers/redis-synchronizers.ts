import type { Subscription, Wake } from '../../../lock-backend.js';
import type {
  PermitCounts,
  RequestId,
  SynchronizerBackend,
  SynchronizerKind,
  TakenPermits,
} from '../../../synchronizer-backend.js';
import type { SemaphoreType, SynchronizerState } from '../../../synchronizer-state.js';
import type { ScriptContext } from '../../calls/script-context.js';
import { slotOf } from '../../hash-slot.js';
import { latchChannel, semaphoreChannel } from '../../lock-keys.js';
import type { ReleaseChannels } from '../../pubsub/release-channels.js';
import { countDown } from '../latch/count-down.js';
import { deleteLatch } from '../latch/delete-latch.js';
import { trySetLatch } from '../latch/try-set-latch.js';
import { countPermits } from '../leased-permits/count-permits.js';
import { giveLeasedPermits } from '../leased-permits/give-leased-permits.js';
import { renewPermits } from '../leased-permits/renew-permits.js';
import { setPermits } from '../leased-permits/set-permits.js';
import { takeLeasedPermits } from '../leased-permits/take-leased-permits.js';
import { addPermits, addPermitsIfExists } from '../semaphore/add-permits.js';
import { drainPermits } from '../semaphore/drain-permits.js';
import { takePermits } from '../semaphore/take-permits.js';
import { trySetPermits } from '../semaphore/try-set-permits.js';
import { getCount } from './count.js';
import { inspectCount } from './inspect-count.js';
import { SynchronizerCalls } from './synchronizer-calls.js';

/** Semaphores and latches in Redis, on Redisson's layout. Each command is one script call. */
export class RedisSynchronizers implements SynchronizerBackend {
  private readonly calls: SynchronizerCalls;

  constructor(
    context: ScriptContext,
    private readonly channels: ReleaseChannels,
  ) {
    this.calls = new SynchronizerCalls(context);
  }

  takePermits(key: string, groups: readonly number[], request: RequestId, initial?: number): Promise<number> {
    return takePermits(this.calls, key, groups, request, initial);
  }

  drainPermits(key: string, request: RequestId): Promise<number> {
    return drainPermits(this.calls, key, request);
  }

  availablePermits(key: string): Promise<number> {
    return getCount(this.calls, key);
  }

  addPermits(key: string, permits: number, request: RequestId, type?: SemaphoreType): Promise<void> {
    return addPermits(this.calls, key, permits, request, type);
  }

  addPermitsIfExists(key: string, permits: number, request: RequestId): Promise<boolean> {
    return addPermitsIfExists(this.calls, key, permits, request);
  }

  trySetPermits(key: string, permits: number, request: RequestId, type: SemaphoreType = 'semaphore'): Promise<boolean> {
    return trySetPermits(this.calls, key, permits, request, type);
  }

  takeLeasedPermits(
    key: string,
    groups: readonly (readonly string[])[],
    leaseTime: number,
    request: RequestId,
    initial?: number,
  ): Promise<TakenPermits> {
    return takeLeasedPermits(this.calls, key, groups, leaseTime, request, initial);
  }

  giveLeasedPermits(key: string, ids: readonly string[], request: RequestId): Promise<readonly boolean[]> {
    return giveLeasedPermits(this.calls, key, ids, request);
  }

  renewPermits(key: string, ids: readonly string[], leaseTime: number): Promise<readonly boolean[]> {
    return renewPermits(this.calls, key, ids, leaseTime);
  }

  setPermits(key: string, permits: number, request: RequestId): Promise<void> {
    return setPermits(this.calls, key, permits, request);
  }

  countPermits(key: string): Promise<PermitCounts> {
    return countPermits(this.calls, key);
  }

  trySetCount(key: string, count: number, request: RequestId): Promise<boolean> {
    return trySetLatch(this.calls, key, count, request);
  }

  countDown(key: string, steps: number, request: RequestId): Promise<void> {
    return countDown(this.calls, key, steps, request);
  }

  getCount(key: string): Promise<number> {
    return getCount(this.calls, key);
  }

  deleteLatch(key: string, request: RequestId): Promise<boolean> {
    return deleteLatch(this.calls, key, request);
  }

  inspect(key: string): Promise<SynchronizerState | undefined> {
    return inspectCount(this.calls, key);
  }

  subscribe(key: string, kind: SynchronizerKind, listener: (wake: Wake) => void): Subscription {
    const channel = kind === 'latch' ? latchChannel(key) : semaphoreChannel(key);
    return this.channels.subscribeTo(key, channel, slotOf(key) === slotOf(channel), listener);
  }
}
