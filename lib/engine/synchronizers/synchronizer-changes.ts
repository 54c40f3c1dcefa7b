import { BackendError } from '../../backends/backend-error.js';
import type { Runtime } from '../../backends/runtime.js';
import type { RequestId, SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { SemaphoreType } from '../../backends/synchronizer-state.js';
import { RetryPause } from '../time/retry-pause.js';

/**
 * For how many milliseconds a request is repeated. After a longer time, the backend may have forgotten that it executed
 * the request (see REQUEST_LIFETIME), so a repetition could be executed a second time.
 */
const LONGEST_OUTAGE = 60_000;
/** How many items one request carries at most. An item that is a list counts once for each of its elements. */
const LARGEST_BATCH = 512;

// ── Changes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Applies changes of one kind to one object in one request, and returns a reply for each. Changes with the same
 * function are sent together.
 */
export type SynchronizerChange<Item, Reply> = (
  backend: SynchronizerBackend,
  key: string,
  items: readonly Item[],
  request: RequestId,
) => Promise<readonly Reply[]>;

/** Gives taken permits back. */
export const releasePermits: SynchronizerChange<number, void> = async (backend, key, amounts, request) => {
  await backend.addPermits(key, sum(amounts), request);
  return amounts.map(() => undefined);
};

/** Changes the total number of permits. */
const addPermits =
  (type: SemaphoreType): SynchronizerChange<number, void> =>
  async (backend, key, amounts, request) => {
    await backend.addPermits(key, sum(amounts), request, type);
    return amounts.map(() => undefined);
  };
export const addCountedPermits = addPermits('semaphore');
export const addLeasedPermits = addPermits('permit-expirable-semaphore');

export const addPermitsIfExists: SynchronizerChange<number, boolean> = async (backend, key, amounts, request) => {
  const exists = await backend.addPermitsIfExists(key, sum(amounts), request);
  return amounts.map(() => exists);
};

export const drainPermits: SynchronizerChange<void, number> = async (backend, key, calls, request) => {
  const drained = await backend.drainPermits(key, request);
  return calls.map((_, index) => (index === 0 ? drained : 0));
};

/** Only the first of several calls can set the permits, and only if they were not set before. */
const trySetPermits =
  (type: SemaphoreType): SynchronizerChange<number, boolean> =>
  async (backend, key, [permits, ...others], request) => {
    return [await backend.trySetPermits(key, permits, request, type), ...others.map(() => false)];
  };
export const trySetCountedPermits = trySetPermits('semaphore');
export const trySetLeasedPermits = trySetPermits('permit-expirable-semaphore');

/** The last call wins. */
export const setPermits: SynchronizerChange<number, void> = async (backend, key, amounts, request) => {
  await backend.setPermits(key, amounts[amounts.length - 1], request);
  return amounts.map(() => undefined);
};

export const giveLeasedPermits: SynchronizerChange<readonly string[], readonly boolean[]> = async (
  backend,
  key,
  lists,
  request,
) => {
  const given = [...(await backend.giveLeasedPermits(key, lists.flat(), request))];
  return lists.map(({ length }) => given.splice(0, length));
};

/** Only the first of several calls can set the count, and only if there was none. */
export const trySetCount: SynchronizerChange<number, boolean> = async (backend, key, [count, ...others], request) => {
  return [await backend.trySetCount(key, count, request), ...others.map(() => false)];
};

export const countDown: SynchronizerChange<number, void> = async (backend, key, steps, request) => {
  await backend.countDown(key, sum(steps), request);
  return steps.map(() => undefined);
};

export const deleteLatch: SynchronizerChange<void, boolean> = async (backend, key, [, ...others], request) => {
  return [await backend.deleteLatch(key, request), ...others.map(() => false)];
};

// ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * The changes that one service makes to semaphores and latches. Each object has a queue for as long as a change is
 * under way.
 */
export class SynchronizerChanges {
  private readonly queues = new Map<string, ChangeQueue>();
  private retries = true;

  constructor(
    private readonly runtime: Runtime,
    private readonly nextRequest: () => RequestId,
  ) {}

  /** The number of objects that are being changed. */
  get size(): number {
    return this.queues.size;
  }

  /** Whether the object with this key is being changed. */
  includes(key: string): boolean {
    return this.queues.has(key);
  }

  /** @throws BackendError, as a rejection */
  apply<Item, Reply>(
    backend: SynchronizerBackend,
    key: string,
    change: SynchronizerChange<Item, Reply>,
    item: Item,
  ): Promise<Reply> {
    return (this.queues.get(key) ?? this.newQueue(backend, key)).apply(change, item);
  }

  /** From now on, a failed request is not sent again. */
  stopRetrying(): void {
    this.retries = false;
    for (const queue of this.queues.values()) queue.retries = false;
  }

  /** Settles when every change has succeeded or failed. */
  async idle(): Promise<void> {
    await Promise.all([...this.queues.values()].map((queue) => queue.end));
  }

  /** Rejects every unanswered change. */
  abandon(): void {
    const error = new BackendError('the lock service was closed before the backend answered', 'unavailable', 'unknown');
    for (const queue of [...this.queues.values()]) queue.abandon(error);
  }

  private newQueue(backend: SynchronizerBackend, key: string): ChangeQueue {
    const queue = new ChangeQueue(backend, key, this.runtime, this.nextRequest, () => this.queues.delete(key));
    queue.retries = this.retries;
    this.queues.set(key, queue);
    return queue;
  }
}

interface Pending {
  readonly item: unknown;
  readonly change: SynchronizerChange<unknown, unknown>;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The changes that one process makes to one object. They are sent one request after another, so that the backend can
 * tell a repetition from a new request. Changes of the same kind that arrive during a request are sent together in the
 * next one. An unanswered request is repeated for a minute.
 */
class ChangeQueue {
  /** Settles when nothing is left to send. */
  end: Promise<void> | undefined;
  /** Whether a failed request is sent again. */
  retries = true;
  private readonly pending: Pending[] = [];
  /** The changes in the current request. */
  private underWay: readonly Pending[] = [];
  private abandoned: BackendError | undefined;
  private readonly pause: RetryPause;

  constructor(
    private readonly backend: SynchronizerBackend,
    private readonly key: string,
    private readonly runtime: Runtime,
    private readonly nextRequest: () => RequestId,
    private readonly retire: () => void,
  ) {
    this.pause = new RetryPause(runtime);
  }

  apply<Item, Reply>(change: SynchronizerChange<Item, Reply>, item: Item): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.pending.push({ item, change, resolve, reject } as Pending);
      this.end ??= this.runtime.detached(() => this.work());
    });
  }

  /** Rejects every unanswered change. */
  abandon(error: BackendError): void {
    this.abandoned = error;
    for (const { reject } of [...this.underWay, ...this.pending.splice(0)]) reject(error);
    this.pause.wake();
  }

  private async work(): Promise<void> {
    while (this.pending.length > 0) {
      const batch = this.nextBatch();
      this.underWay = batch;
      try {
        const replies = await this.send(batch);
        for (const [index, { resolve }] of batch.entries()) resolve(replies[index]);
      } catch (error) {
        for (const { reject } of batch) reject(error as Error);
      }
    }
    this.retire();
  }

  private nextBatch(): readonly Pending[] {
    const [{ change }] = this.pending;
    let size = 0;
    const end = this.pending.findIndex((pending, index) => {
      size += Array.isArray(pending.item) ? pending.item.length : 1;
      return index > 0 && (pending.change !== change || size > LARGEST_BATCH);
    });
    return this.pending.splice(0, end < 0 ? this.pending.length : end);
  }

  private async send(batch: readonly Pending[]): Promise<readonly unknown[]> {
    const { backend, key, pause, runtime } = this;
    const items = batch.map(({ item }) => item);
    const end = runtime.monotonic() + LONGEST_OUTAGE;
    let request = this.nextRequest();
    pause.reset();
    for (;;) {
      let delay: number;
      try {
        return await batch[0].change(backend, key, items, request);
      } catch (error) {
        const { kind, outcome } = error as BackendError;
        delay = pause.next();
        const mayRetry = this.retries && this.abandoned === undefined && kind === 'unavailable';
        if (!mayRetry || runtime.monotonic() + delay > end) throw error;
        if (outcome === 'unknown') request = { ...request, repeated: true };
      }
      await pause.sleep(delay);
      if (this.abandoned !== undefined) throw this.abandoned;
    }
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
