import { BackendError } from '../../backends/backend-error.js';
import type { Runtime } from '../../backends/runtime.js';
import type { SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import { MutationQueue } from './mutation-queue.js';
import type { Mutation } from './mutations.js';
import type { RequestIds } from './request-ids.js';

/** The changes that one service makes to semaphores and latches: a queue for each object, for as long as something is under way. */
export class MutationQueues {
  private readonly queues = new Map<string, MutationQueue>();
  private readonly pending = new Set<Promise<unknown>>();
  private retries = true;

  constructor(
    private readonly runtime: Runtime,
    private readonly ids: RequestIds,
  ) {}

  get size(): number {
    return this.queues.size + this.pending.size;
  }

  /** Rejects with BackendError. */
  apply<Item, Reply>(
    backend: SynchronizerBackend,
    key: string,
    mutation: Mutation<Item, Reply>,
    item: Item,
  ): Promise<Reply> {
    const reply = (this.queues.get(key) ?? this.create(backend, key)).apply(mutation, item);
    const end = () => void this.pending.delete(reply);
    this.pending.add(reply);
    reply.then(end, end);
    return reply;
  }

  /** From now on a request that fails is not sent again. */
  stopRetrying(): void {
    this.retries = false;
    for (const queue of this.queues.values()) queue.stopRetrying();
  }

  /** Settles when every change has succeeded or failed. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.pending);
  }

  /** Rejects every change that has no answer yet. */
  abandon(): void {
    const error = new BackendError('the lock service was closed before the backend answered', 'unavailable', 'unknown');
    for (const queue of [...this.queues.values()]) queue.abandon(error);
  }

  private create(backend: SynchronizerBackend, key: string): MutationQueue {
    const nextRequest = () => this.ids.next('change');
    const queue = new MutationQueue(backend, key, this.runtime, nextRequest, () => this.queues.delete(key));
    if (!this.retries) queue.stopRetrying();
    this.queues.set(key, queue);
    return queue;
  }
}
