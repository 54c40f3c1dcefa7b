import { BackOff } from '../../backends/back-off.js';
import type { BackendError } from '../../backends/backend-error.js';
import type { Runtime } from '../../backends/runtime.js';
import type { RequestId, SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import { InterruptibleSleep } from '../waiting/interruptible-sleep.js';
import type { Mutation } from './mutations.js';

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1_000;
/** Afterwards the backend may have forgotten that it executed the request (see REQUEST_LIFETIME): a repetition could count twice. */
const LONGEST_OUTAGE = 60_000;
/** How many items one request carries, counting the elements of items that are lists. */
const LARGEST_BATCH = 512;

interface Pending {
  readonly item: unknown;
  readonly mutation: Mutation<unknown, unknown>;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The changes that one process makes to one object. They are sent one request after the other, so that the backend can tell a repetition
 * from a new request. Changes that arrive while a request is under way are sent together in the next one, if they are of one kind. An
 * outage is waited out for a minute.
 */
export class MutationQueue {
  private readonly pending: Pending[] = [];
  private working = false;
  private retries = true;
  /** What the request under way carries. */
  private underWay: readonly Pending[] = [];
  private abandoned: BackendError | undefined;
  private readonly pause: InterruptibleSleep;

  constructor(
    private readonly backend: SynchronizerBackend,
    private readonly key: string,
    private readonly runtime: Runtime,
    private readonly nextRequest: () => RequestId,
    private readonly retire: () => void,
  ) {
    this.pause = new InterruptibleSleep(runtime);
  }

  /** Rejects with BackendError. */
  apply<Item, Reply>(mutation: Mutation<Item, Reply>, item: Item): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.pending.push({ item, mutation, resolve, reject } as Pending);
      if (!this.working) this.runtime.detached(() => void this.work());
    });
  }

  /** From now on a request that fails is not sent again. */
  stopRetrying(): void {
    this.retries = false;
  }

  /** Rejects every change that has no answer yet. */
  abandon(error: BackendError): void {
    this.abandoned = error;
    for (const { reject } of [...this.underWay, ...this.pending.splice(0)]) reject(error);
    this.pause.wake();
  }

  private async work(): Promise<void> {
    this.working = true;
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
    this.working = false;
    this.underWay = [];
    this.retire();
  }

  private nextBatch(): readonly Pending[] {
    const [{ mutation }] = this.pending;
    let size = 0;
    const end = this.pending.findIndex((pending, index) => {
      size += Array.isArray(pending.item) ? pending.item.length : 1;
      return index > 0 && (pending.mutation !== mutation || size > LARGEST_BATCH);
    });
    return this.pending.splice(0, end < 0 ? this.pending.length : end);
  }

  private async send(batch: readonly Pending[]): Promise<readonly unknown[]> {
    const items = batch.map(({ item }) => item);
    const end = this.runtime.monotonic() + LONGEST_OUTAGE;
    const backOff = new BackOff(this.runtime, FIRST_PAUSE, LONGEST_PAUSE);
    let request = this.nextRequest();
    for (;;) {
      let pause: number;
      try {
        return await batch[0].mutation(this.backend, this.key, items, request);
      } catch (error) {
        const { kind, outcome } = error as BackendError;
        pause = backOff.next();
        const mayRetry = this.retries && this.abandoned === undefined && kind === 'unavailable';
        if (!mayRetry || this.runtime.monotonic() + pause > end) throw error;
        if (outcome === 'unknown') request = { ...request, repeated: true };
      }
      await this.pause.sleep(pause);
      if (this.abandoned !== undefined) throw this.abandoned;
    }
  }
}
