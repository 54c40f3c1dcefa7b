import type { BackendError } from '../../backends/backend-error.js';
import type { RequestId, SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { ActiveWork } from '../active-work.js';
import { LockConfigurationError } from '../errors.js';
import { admitCaller } from '../queue/begin-wait.js';
import { checkResult } from '../scope/body-result.js';
import type { Services } from '../services.js';
import { toLockName } from '../terms/lock-name.js';
import type { WaitTerms } from '../terms/wait-terms.js';
import { permanentError } from '../wait/wait-errors.js';
import { HeldPermitLease, type PermitLease } from './permit-lease.js';
import { PermitQueue, type PermitSource, PermitWaiter } from './permit-queue.js';
import { CountedPermits, LeasedPermits, type LeasedPermitTerms, OpenLatch } from './permit-sources.js';
import { RenewedPermits } from './renewed-permits.js';
import { SemaphoreWarnings } from './semaphore-warnings.js';
import { noUsableAnswer, type Synchronizer } from './synchronizer.js';
import {
  giveLeasedPermits,
  releasePermits,
  type SynchronizerChange,
  SynchronizerChanges,
} from './synchronizer-changes.js';

/** The kinds of queues. */
const KINDS = ['permits', 'leased-permits', 'latch'] as const;
type Kind = (typeof KINDS)[number];

/**
 * The semaphores and latches of one service: their waiting callers, the changes under way, and the permits that are
 * renewed. It keeps no state for objects that nobody uses.
 *
 * A waiting caller joins the queue of its object (permit-queue.ts), which requests permits from a source
 * (permit-sources.ts). Changes, which need no waiting, are sent one after another (synchronizer-changes.ts). Permits
 * with an id but no leaseTime are renewed until they are released (renewed-permits.ts).
 */
export class Synchronizers {
  readonly renewedPermits: RenewedPermits;
  private readonly changes: SynchronizerChanges;
  private requests = 0;
  private readonly warnings: SemaphoreWarnings;
  /** How many bodies of this process hold permits of a semaphore, by its key. */
  private readonly bodies = new Map<string, number>();

  /** @param watchdogTimeout the lease of permits without a leaseTime, in milliseconds */
  constructor(
    private readonly services: Services,
    watchdogTimeout: number,
  ) {
    const { work } = services;
    this.renewedPermits = new RenewedPermits(
      () => this.backend,
      services,
      watchdogTimeout,
      () => work.changed(),
    );
    work.countPermits = () => this.renewedPermits.size;
    this.warnings = new SemaphoreWarnings(services);
    this.changes = new SynchronizerChanges(services.runtime, () => this.nextRequest('change'));
  }

  /** By kind and key. A queue exists for as long as callers wait in it. */
  private get queues(): ActiveWork['permitQueues'] {
    return this.services.work.permitQueues;
  }

  /** The numbers of queues, of changes under way, and of renewed permits. */
  activity(): { readonly permitQueues: number; readonly changes: number; readonly renewedPermits: number } {
    const { queues, changes, renewedPermits } = this;
    return { permitQueues: queues.size, changes: changes.size, renewedPermits: renewedPermits.size };
  }

  /**
   * @param kind the kind in messages: `semaphore`
   * @param method the method that created the handle: `getSemaphore`
   * @param initial creates a missing semaphore with this many permits
   * @throws LockKeyError for a bad name, LockConfigurationError when the backend has no semaphores and latches
   */
  named(name: string, kind: string, method: string, initial?: number): Synchronizer {
    const key = this.services.keyOf(toLockName(name, `${method}()`), `${method}()`);
    void this.backend;
    return { name, key, what: `the ${kind} '${name}'`, method, initial };
  }

  /** Waits for permits that are only counted. */
  async takePermits(semaphore: Synchronizer, permits: number, terms: WaitTerms): Promise<void> {
    const giveBack = (unused: number) => this.inBackground(this.change(semaphore, releasePermits, unused));
    const onMissing = () => this.warnings.isMissing(semaphore);
    const newSource = () => new CountedPermits(this.backend, semaphore, giveBack, onMissing);
    await this.wait('permits', semaphore, permits, terms, newSource);
    this.warnings.exists(semaphore, this.backend);
  }

  /** Waits for permits with ids, and resolves to the ids. */
  async takeLeasedPermits(
    semaphore: Synchronizer,
    permits: number,
    terms: LeasedPermitTerms,
  ): Promise<readonly string[]> {
    const { services, renewedPermits } = this;
    const giveBack = (unused: readonly string[]) =>
      this.inBackground(this.change(semaphore, giveLeasedPermits, unused));
    const onMissing = () => this.warnings.isMissing(semaphore);
    const newSource = () => new LeasedPermits(this.backend, services, renewedPermits, semaphore, giveBack, onMissing);
    const ids = await this.wait<readonly string[], LeasedPermitTerms>(
      'leased-permits',
      semaphore,
      permits,
      terms,
      newSource,
    );
    this.warnings.exists(semaphore, this.backend);
    return ids;
  }

  /** Runs `body` while these permits are taken, then gives them back. An error of `body` is thrown in any case. */
  async runWithPermits<T>(semaphore: Synchronizer, permits: number, body: () => T | Promise<T>): Promise<T> {
    return this.runThenGiveBack(semaphore, body, () => this.change(semaphore, releasePermits, permits));
  }

  /**
   * Like {@link runWithPermits}, for a permit with an id, which is renewed.
   *
   * @throws LockLostError when `body` has succeeded although the permit was lost, unless `onLost` is `'warn'`
   */
  async runWithLeasedPermit<T>(
    semaphore: Synchronizer,
    id: string,
    body: (permit: PermitLease) => T | Promise<T>,
    onLost: 'throw' | 'warn',
  ): Promise<T> {
    const permit = new HeldPermitLease(id, semaphore);
    this.renewedPermits.watch(semaphore, id, (loss) => permit.lose(loss));
    const result = await this.runThenGiveBack(
      semaphore,
      () => body(permit),
      async () => {
        this.renewedPermits.remove(semaphore, [id]);
        const [wasHeld] = await this.change(semaphore, giveLeasedPermits, [id]);
        permit.released(wasHeld);
      },
    );
    if (permit.loss === undefined) return result;
    if (onLost === 'throw') throw permit.loss;
    this.services.events.warnOfLoss(permit.loss);
    return result;
  }

  private async runThenGiveBack<T>(
    { key, what }: Synchronizer,
    body: () => T | Promise<T>,
    giveBack: () => Promise<void>,
  ): Promise<T> {
    const { work, events } = this.services;
    const period = work.bodyStarted();
    this.countBodies(key, 1);
    try {
      const result = await body();
      checkResult(result, { what: `withPermit() of ${what}`, body }, events);
      return result;
    } finally {
      work.bodyEnded(period);
      await giveBack().catch((error: Error) => events.emit('error', error));
      this.countBodies(key, -1);
      work.changed();
    }
  }

  private countBodies(key: string, change: 1 | -1): void {
    const count = (this.bodies.get(key) ?? 0) + change;
    if (count === 0) this.bodies.delete(key);
    else this.bodies.set(key, count);
  }

  /** Whether permits are certainly held or given back here. Those that are only counted may be held anywhere. */
  private isHeldHere(key: string): boolean {
    return this.bodies.has(key) || this.renewedPermits.includes(key) || this.changes.includes(key);
  }

  /** Waits until a latch is open. */
  awaitLatch(latch: Synchronizer, terms: WaitTerms): Promise<void> {
    return this.wait('latch', latch, 0, terms, () => new OpenLatch(this.backend, latch));
  }

  /** How many callers of this process wait for a semaphore or latch. */
  waiting(key: string): number {
    return KINDS.reduce((sum, kind) => sum + (this.queues.get(`${kind} ${key}`)?.length ?? 0), 0);
  }

  /** Changes an object. Changes of one object are sent one after another, and retried for a minute during an outage. */
  change<Item, Reply>(object: Synchronizer, change: SynchronizerChange<Item, Reply>, item: Item): Promise<Reply> {
    const changed = this.explained(object, this.changes.apply(this.backend, object.key, change, item));
    if (this.services.admission.isEnding) this.recheckAfter(changed, object.key);
    return changed;
  }

  /** During shutdown, callers here ask again at once, before they would be refused: the message about a change is late. */
  private recheckAfter(changed: Promise<unknown>, key: string): void {
    const recheck = () => {
      for (const kind of KINDS) this.queues.get(`${kind} ${key}`)?.recheck();
    };
    changed.then(recheck, recheck);
  }

  /** Reads an object without changing it. */
  ask<T>(object: Synchronizer, query: (backend: SynchronizerBackend, key: string) => Promise<T>): Promise<T> {
    return this.explained(object, query(this.backend, object.key));
  }

  /**
   * Rejects all waiters, and settles when all requests under way are answered. Permits that are still held expire with
   * their leases, because their holders may still be at work.
   */
  async close(): Promise<void> {
    for (const { semaphore, count } of this.renewedPermits.close())
      this.services.events.logger.warn(
        `Shutdown: ${count} permits of ${semaphore.what} are still held; they are no longer renewed and expire with their leases`,
      );
    this.changes.stopRetrying();
    const queues = [...this.queues.values()];
    this.queues.clear();
    await Promise.all(queues.map((queue) => queue.close()));
    await this.changes.idle();
  }

  /** Rejects every unanswered change. */
  abandon(): void {
    this.changes.abandon();
  }

  private wait<Granted, Terms extends WaitTerms>(
    kind: Kind,
    object: Synchronizer,
    permits: number,
    terms: Terms,
    newSource: () => PermitSource<PermitWaiter<Granted, Terms>>,
  ): Promise<Granted> {
    const { starting } = this.services;
    if (starting !== undefined) return starting.then(() => this.wait(kind, object, permits, terms, newSource));
    return new Promise((resolve, reject) => {
      const waiter = new PermitWaiter(object, permits, terms, this.services.runtime, resolve, reject);
      if (!admitCaller(this.services, waiter, waiter.what, object.key)) return;
      const queue = this.queues.get(`${kind} ${object.key}`) ?? this.newQueue(kind, object.key, newSource());
      (queue as PermitQueue<PermitWaiter<Granted, Terms>>).enqueue(waiter);
    });
  }

  private newQueue<Waiter extends PermitWaiter<never>>(
    kind: Kind,
    key: string,
    source: PermitSource<Waiter>,
  ): PermitQueue<Waiter> {
    const retire = () => {
      this.queues.delete(`${kind} ${key}`);
      this.services.outages.left();
      this.services.work.changed();
    };
    const isHeldHere = () => this.isHeldHere(key);
    const queue = new PermitQueue(this.services, key, source, () => this.nextRequest(kind), isHeldHere, retire);
    this.queues.set(`${kind} ${key}`, queue);
    return queue;
  }

  /** Creates the id of a request. Each session has at most one request under way per object. */
  private nextRequest(session: Kind | 'change'): RequestId {
    return { session: `${this.services.clientId}:${session}`, sequence: ++this.requests };
  }

  /** @throws LockConfigurationError when the backend has no semaphores and latches */
  private get backend(): SynchronizerBackend {
    const { synchronizers, description } = this.services.backend;
    if (synchronizers !== undefined) return synchronizers;
    throw new LockConfigurationError(
      `${description} does not support semaphores and latches: use a service with a single connection for them`,
    );
  }

  /** Replaces the backend's errors with those of this library. */
  private async explained<T>(object: Synchronizer, reply: Promise<T>): Promise<T> {
    try {
      return await reply;
    } catch (error) {
      const refused = { ...object, notServed: noUsableAnswer(object.what) };
      throw permanentError(refused, this.services.backend, error as BackendError);
    }
  }

  /** Emits an event if a change that nobody waits for fails. */
  private inBackground(change: Promise<unknown>): void {
    change.catch((error: Error) => this.services.events.emit('error', error));
  }
}
