import type { AcquisitionContext } from '../acquisition-context.js';
import { abortedError } from '../waiting/caller.js';
import type { WaitingQueue } from '../waiting/outages.js';
import { PermitQueue } from './permit-queue.js';
import type { PermitSource } from './permit-source.js';
import type { PermitWaiter } from './permit-waiter.js';
import type { RequestIds } from './request-ids.js';

/** What the waiters of a queue wait for. */
const KINDS = ['permits', 'leased-permits', 'latch'] as const;
export type PermitQueueKind = (typeof KINDS)[number];

/** The queues of one service in which callers wait. A queue exists for as long as somebody waits in it. */
export class PermitQueues {
  private readonly queues = new Map<
    string,
    Pick<PermitQueue<never>, 'rejectWaiters' | 'close' | 'length'> & WaitingQueue
  >();

  /** @param admit see `SynchronizerHost.admit` */
  constructor(
    private readonly context: AcquisitionContext,
    private readonly ids: RequestIds,
    private readonly admit: (what: string, name: string) => boolean,
  ) {}

  get size(): number {
    return this.queues.size;
  }

  /** How many callers wait for this semaphore or latch. */
  waiting(key: string): number {
    return KINDS.reduce((sum, kind) => sum + (this.queues.get(`${kind} ${key}`)?.length ?? 0), 0);
  }

  /** Lets a caller wait in the queue of its kind and key, which is created for the first one. */
  enqueue<W extends PermitWaiter<never>>(
    kind: PermitQueueKind,
    key: string,
    waiter: W,
    newSource: () => PermitSource<W>,
  ): void {
    const { signal } = waiter.terms;
    try {
      waiter.scoped = this.admit(waiter.what, waiter.name);
    } catch (error) {
      return waiter.refuse(error as Error);
    }
    if (signal?.aborted) return waiter.refuse(abortedError(waiter, signal));
    if (this.context.outages.active) {
      const refusal = this.context.outages.arrived(waiter, [key]);
      if (refusal !== undefined) return waiter.refuse(refusal);
    }
    const present = this.queues.get(`${kind} ${key}`) as PermitQueue<W> | undefined;
    (present ?? this.create(kind, key, newSource())).enqueue(waiter);
  }

  forEach(show: (queue: WaitingQueue) => void): void {
    for (const queue of [...this.queues.values()]) show(queue);
  }

  /** Shutdown: rejects all waiters, except those in a lock scope. */
  rejectWaiters(): void {
    for (const queue of [...this.queues.values()]) queue.rejectWaiters();
  }

  /** Rejects all waiters. Settles when all requests that are under way are answered. */
  async close(): Promise<void> {
    const queues = [...this.queues.values()];
    this.queues.clear();
    await Promise.all(queues.map((queue) => queue.close()));
  }

  private create<W extends PermitWaiter<never>>(
    kind: PermitQueueKind,
    key: string,
    source: PermitSource<W>,
  ): PermitQueue<W> {
    const retire = () => {
      this.queues.delete(`${kind} ${key}`);
      this.context.outages.left();
    };
    const queue = new PermitQueue(this.context, key, source, () => this.ids.next(kind), retire);
    this.queues.set(`${kind} ${key}`, queue);
    return queue;
  }
}
