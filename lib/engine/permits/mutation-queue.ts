import type { BackendError } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { RequestId, SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { Mutation } from './mutations.js';

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1_000;
/** Afterwards the backend may have forgotten that it executed the request (see REQUEST_MEMORY): a repetition could count twice. */
const LONGEST_OUTAGE = 60_000;
/** Items, and what is in them where they are lists. */
const LARGEST_BATCH = 512;

interface Pending {
  readonly item: unknown;
  readonly change: Mutation<unknown, unknown>;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * What one process changes in one object, one request after the other, so that the backend can tell a repetition from a new one.
 * Changes that come while a request is under way travel together in the next, where they are of one kind. An outage is waited
 * out for a minute.
 */
export class MutationQueue {
  private readonly pending: Pending[] = [];
  private working = false;
  private closing = false;
  /** What is on its way. */
  private delivered: readonly Pending[] = [];
  private abandoned: BackendError | undefined;
  /** Ends a pause. */
  private wakeUp = () => {};

  constructor(
    private readonly backend: SynchronizerBackend,
    private readonly key: string,
    private readonly runtime: Runtime,
    private readonly nextRequest: () => RequestId,
    private readonly retire: () => void,
  ) {}

  /** Rejects with BackendError. */
  apply<Item, Reply>(change: Mutation<Item, Reply>, item: Item): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.pending.push({ item, change, resolve, reject } as Pending);
      if (!this.working) this.runtime.detached(() => void this.work());
    });
  }

  /** From now on nothing is sent again after a failure. */
  close(): void {
    this.closing = true;
  }

  /** Rejects all that has no answer. */
  abandon(error: BackendError): void {
    this.abandoned = error;
    for (const { reject } of [...this.delivered, ...this.pending.splice(0)]) reject(error);
    this.wakeUp();
  }

  private async work(): Promise<void> {
    this.working = true;
    while (this.pending.length > 0) {
      const batch = this.nextBatch();
      this.delivered = batch;
      try {
        const replies = await this.deliver(batch);
        for (const [index, { resolve }] of batch.entries()) resolve(replies[index]);
      } catch (error) {
        for (const { reject } of batch) reject(error as Error);
      }
    }
    this.working = false;
    this.delivered = [];
    this.retire();
  }

  private sleep(pause: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.runtime.timer(pause, resolve, 'keep-alive');
      this.wakeUp = () => {
        timer.cancel();
        resolve();
      };
    });
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

  private async deliver(batch: readonly Pending[]): Promise<readonly unknown[]> {
    let request = this.nextRequest();
    const items = batch.map(({ item }) => item);
    const end = this.runtime.monotonic() + LONGEST_OUTAGE;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      try {
        return await batch[0].change(this.backend, this.key, items, request);
      } catch (error) {
        const hopeless = this.abandoned !== undefined || (error as BackendError).kind !== 'unavailable';
        if (hopeless || this.closing || this.runtime.monotonic() + pause > end) throw error;
        if ((error as BackendError).outcome === 'unknown') request = { ...request, repeated: true };
      }
      await this.sleep(pause);
      if (this.abandoned !== undefined) throw this.abandoned;
    }
  }
}
