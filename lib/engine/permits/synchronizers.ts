import { BackendError } from '../../backends/lock-backend.js';
import type { RequestId, SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import { LockConfigurationError } from '../errors.js';
import type { LockEngine } from '../lock-engine.js';
import { toLockName } from '../lock-name.js';
import { abortedError } from '../waiting/caller.js';
import { MutationQueue } from './mutation-queue.js';
import type { Mutation } from './mutations.js';
import { backendFailure } from './permit-errors.js';
import { PermitQueue } from './permit-queue.js';
import type { PermitSource, PermitWaiter, Synchronizer } from './permit-request.js';
import { PermitWatchdog } from './permit-watchdog.js';

/** What callers wait for: permits, permits with ids, that a latch opens. */
type LineKind = 'permits' | 'ids' | 'latch';
type Line = Pick<PermitQueue<never>, 'rejectWaiters' | 'close'>;

/**
 * The semaphores and latches of one service: who waits for them, what is changed in them, and the permits that are kept. What is
 * idle is forgotten: nothing here grows with the names that were seen.
 */
export class Synchronizers {
  readonly permitWatchdog: PermitWatchdog;
  private readonly lines = new Map<string, Line>();
  private readonly mutationQueues = new Map<string, MutationQueue>();
  private readonly changes = new Set<Promise<unknown>>();
  private requests = 0;
  private closed = false;

  /** @param onIdle no permit is kept any more */
  constructor(
    private readonly engine: LockEngine,
    onIdle: () => void,
  ) {
    const { context, settings } = engine;
    this.permitWatchdog = new PermitWatchdog(() => this.backend, context, settings.watchdogTimeout, onIdle);
  }

  /** @throws LockConfigurationError when the backend keeps none */
  get backend(): SynchronizerBackend {
    const { synchronizers, description } = this.engine.context.backend;
    if (synchronizers !== undefined) return synchronizers;
    throw new LockConfigurationError(
      `${description} keeps no semaphores and latches: use a service with one connection for them`,
    );
  }

  /**
   * @param kind `semaphore`
   * @param method how errors name the call: `getSemaphore()`
   */
  named(name: string, kind: string, method: string): Synchronizer {
    const key = this.engine.keyOf(toLockName(name, method));
    void this.backend;
    return { name, key, what: `the ${kind} '${name}'` };
  }

  /** Waits in the line of this object and kind, which is made when nobody waits in it. */
  enter<C extends PermitWaiter<never>>(
    kind: LineKind,
    { key }: Synchronizer,
    caller: C,
    supply: () => PermitSource<C>,
  ): void {
    const { signal } = caller.terms;
    try {
      caller.scoped = this.engine.admit(caller.what, caller.name);
    } catch (error) {
      return caller.refuse(error as Error);
    }
    if (signal?.aborted) return caller.refuse(abortedError(caller, signal));
    const present = this.lines.get(`${kind} ${key}`) as PermitQueue<C> | undefined;
    (present ?? this.open(kind, key, supply())).enqueue(caller);
  }

  /** Changes an object, one request after the other; an outage is waited out for a minute. */
  mutate<Item, Reply>(object: Synchronizer, change: Mutation<Item, Reply>, item: Item): Promise<Reply> {
    const changed = this.mutations(object.key).apply(change, item);
    const end = () => void this.changes.delete(changed);
    this.changes.add(changed);
    changed.then(end, end);
    return this.answer(object, changed);
  }

  /** Gives what the backend answers, with the errors of this library. */
  async answer<T>(object: Synchronizer, reply: Promise<T>): Promise<T> {
    try {
      return await reply;
    } catch (error) {
      throw backendFailure(object, this.engine.context.backend, error as Error);
    }
  }

  /** What nobody waits for: a failure is an event. */
  settle(change: Promise<unknown>): void {
    change.catch((error: Error) => this.engine.context.events.emit('error', error));
  }

  /** What is waited for, changed and kept, in numbers. */
  activity(): { readonly permitQueues: number; readonly mutations: number; readonly keptPermits: number } {
    return {
      permitQueues: this.lines.size,
      mutations: this.mutationQueues.size,
      keptPermits: this.permitWatchdog.size,
    };
  }

  /** Shutdown: sends away who waits. */
  rejectWaiters(): void {
    for (const line of [...this.lines.values()]) line.rejectWaiters();
  }

  /** Lets end what is under way. Permits that are still kept lapse with their leases: what they stand for may still go on. */
  async close(): Promise<void> {
    const { logger } = this.engine.context.events;
    for (const { semaphore, count } of this.permitWatchdog.close())
      logger.warn(
        `Shutdown: ${count} permits of ${semaphore.what} are still held; they are renewed no more, and lapse with their leases`,
      );
    this.closed = true;
    for (const queue of this.mutationQueues.values()) queue.close();
    await Promise.all([...this.lines.values()].map((line) => line.close()));
    await Promise.allSettled(this.changes);
  }

  /** Rejects the changes that have no answer yet. */
  abandon(): void {
    const error = new BackendError('the lock service was closed before it had an answer', 'unavailable', 'unknown');
    for (const queue of [...this.mutationQueues.values()]) queue.abandon(error);
  }

  private open<C extends PermitWaiter<never>>(kind: LineKind, key: string, supply: PermitSource<C>): PermitQueue<C> {
    const retire = () => this.lines.delete(`${kind} ${key}`);
    const line = new PermitQueue(this.engine.context, supply, () => this.nextRequest(kind), retire);
    this.lines.set(`${kind} ${key}`, line);
    return line;
  }

  private mutations(key: string): MutationQueue {
    const present = this.mutationQueues.get(key);
    if (present !== undefined) return present;
    const queue = new MutationQueue(
      this.backend,
      key,
      this.engine.context.runtime,
      () => this.nextRequest('change'),
      () => this.mutationQueues.delete(key),
    );
    if (this.closed) queue.close();
    this.mutationQueues.set(key, queue);
    return queue;
  }

  private nextRequest(session: LineKind | 'change'): RequestId {
    return { session: `${this.engine.context.clientId}:${session}`, sequence: ++this.requests };
  }
}
