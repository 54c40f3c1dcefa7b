import type { Attempt } from '../ask/attempt.js';
import type { WaitingPlace } from '../deadlock/nested-wait.js';
import type { HolderClient } from '../describe-holder.js';
import { AWAITED, type HeldLock, type LockWaiter } from '../hold/held-lock.js';
import type { LockQueues, LockTable } from '../lock-table.js';
import { beginWait } from '../queue/begin-wait.js';
import { closeGatesAbove, findReentry, isStillShared, type Reentry, shareMode } from '../reentry/reentry.js';
import type { EnteredGate, ShareGate } from '../scope/share-gate.js';
import type { Milliseconds } from '../terms/duration.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import type { Awaited } from '../wait/awaited.js';
import type { Caller } from '../wait/caller.js';
import { Waiter } from '../wait/waiter.js';
import { holderInWords } from './all-or-none.js';
import type { Wanted } from './hold-and-wait.js';

/**
 * One of several locks that a caller wants. It is acquired through its queue, or shared with the scope that already
 * holds it.
 */
export class WantedLock implements Wanted {
  readonly key: string;
  /** Whether the caller runs in a lock scope of this service. */
  scoped = false;
  /** The lock, once it is acquired. */
  held: HeldLock | undefined;
  /** The gate that was entered for a shared lock. Set while that lock is claimed or held. */
  private gate: ShareGate | undefined;
  /** Gates that are closed to other readers while {@link gate} is entered. */
  private above: readonly EnteredGate[] = [];
  private readonly services: LockTable['services'];
  private reentry: Reentry | undefined;
  private waiter: LockWaiter | undefined;
  /** Where the {@link waiter} waits: in the queue of the lock, or at the gate of a scope that shares it. */
  private place: WaitingPlace | undefined;

  constructor(
    private readonly table: LockTable,
    readonly name: string,
    private readonly terms: AcquisitionTerms,
    what: string,
  ) {
    this.services = table.services;
    this.key = this.services.keyOf(name, what);
    this.refreshReentry();
  }

  /** The gates to leave when the shared use of the lock ends. */
  get entered(): readonly EnteredGate[] {
    return this.gate === undefined ? [] : [this.gate, ...this.above];
  }

  get sortKey(): string {
    return `${this.name}\0${this.terms.type}\0${this.services.backend.description}`;
  }

  get taken(): boolean {
    return this.held !== undefined;
  }

  /** What the caller waits for in the queue of this lock. */
  get awaited(): Awaited {
    const { waiter, reentry, table, terms, name } = this;
    if (waiter === undefined || waiter.settled || reentry !== undefined) return 'an answer';
    return table.find(terms.type, name)?.callers.awaited ?? 'an answer';
  }

  get shared(): boolean {
    return this.reentry !== undefined;
  }

  /** The lock was lost, its lease has ended, or the scope that shared it has ended. */
  get stale(): boolean {
    const { held, reentry } = this;
    if (held === undefined || this.services.watchdog.judge(held) !== 'held') return true;
    return reentry !== undefined && !isStillShared(this.services, reentry);
  }

  get aged(): boolean {
    const { held, reentry, services } = this;
    if (held === undefined || reentry !== undefined || !held.fixed) return false;
    return services.clock.age(held.confirmed) > held.leaseTime / 10;
  }

  get holder(): string | undefined {
    return this.reentry?.held.owner;
  }

  /**
   * The owner in this process that is releasing the lock and has had no answer yet. `undefined` if something else in
   * this process also blocks the lock.
   */
  get leaving(): string | undefined {
    return this.queue.leaving;
  }

  describe(holder: string | undefined): { readonly client: HolderClient | undefined; readonly who: string } {
    const { holders } = this.services;
    const client = holders.known(holder);
    return { client, who: holderInWords(holder, client, holders.unrecorded(holder)) };
  }

  /**
   * Checks whether the current async context already holds the lock. The result can change if a scope ends while the
   * caller waits for other locks.
   *
   * @throws LockUpgradeError and LockConfigurationError as {@link shareMode} does
   */
  refreshReentry(): void {
    this.reentry = findReentry(this.services, this.key, this.terms);
    if (this.reentry !== undefined) shareMode(this.reentry.held, this.terms.type);
  }

  /**
   * Reserves the lock for one attempt.
   *
   * @returns false if the attempt would have to wait
   * @throws LockUpgradeError as {@link closeGatesAbove} does
   */
  claim(): boolean {
    if (this.reentry === undefined) return this.queue.claim();
    const { scope, held } = this.reentry;
    const mode = shareMode(held, this.terms.type);
    const gate = scope.lease.gates.gate(this.key);
    if (!gate.open(mode)) return false;
    gate.enter(mode);
    this.hasEntered(gate, this.reentry);
    return true;
  }

  unclaim(): void {
    if (this.reentry === undefined) this.queue.unclaim();
    else this.leaveGate();
  }

  /** Turns the claim into a held lock after the attempt was granted. */
  fulfil(attempt: Attempt, token: number): void {
    this.held = this.queue.fulfil(attempt, this.terms, token);
  }

  /**
   * Whether the lock is shared and the clocks have diverged, so that only the backend knows if it is still held.
   */
  get unsure(): boolean {
    const held = this.reentry?.held;
    return held !== undefined && this.services.watchdog.judge(held) === 'unsure';
  }

  /**
   * Asks the backend about an {@link unsure} lock.
   *
   * @throws BackendError when there is no answer
   */
  async confirm(): Promise<void> {
    const held = this.reentry?.held;
    if (held !== undefined) await this.services.watchdog.confirmNow(held);
  }

  /** Turns the claim of a shared lock into a hold. */
  share(): void {
    this.held = this.reentry?.held;
  }

  /** Whether an outage kept a caller from this lock. The caller wants all the locks, and its waitTime has ended. */
  isUnavailableTo(caller: Caller<never>): boolean {
    const queue = this.table.find(this.terms.type, this.name);
    return queue?.callers.isUnavailableTo(caller) ?? this.services.outages.isSilent(caller, [this.key], false);
  }

  wait(waitTime: Milliseconds, { calledAt }: Caller<never>, departed: () => Error): Promise<void> {
    this.refreshReentry();
    return new Promise((resolve, reject) => {
      const granted = (held: HeldLock) => {
        this.held = held;
        resolve();
      };
      const { services, name } = this;
      const terms = { ...this.terms, waitTime };
      const waiter: LockWaiter = new Waiter(name, services.newOwner, terms, services.runtime, granted, reject);
      waiter.scoped = this.scoped;
      waiter.calledAt = calledAt;
      this.waiter = waiter;
      const { reentry } = this;
      if (reentry !== undefined) return this.waitAtGate(reentry, waiter, departed);
      const { queue } = this;
      this.place = queue.callers;
      beginWait(services, queue, waiter, true);
    });
  }

  stopWaiting(error: Error): void {
    const { waiter } = this;
    if (waiter !== undefined && !waiter.settled) this.place?.dismiss(waiter, error);
  }

  async restartLease(): Promise<void> {
    if (this.held !== undefined && this.aged) await this.services.watchdog.extend(this.held, this.held.leaseTime);
  }

  async giveBack(): Promise<void> {
    const { held } = this;
    this.held = undefined;
    if (this.gate !== undefined) this.leaveGate();
    else if (held !== undefined) await held.keeper.giveBack(held, AWAITED);
  }

  private waitAtGate(reentry: Reentry, waiter: LockWaiter, departed: () => Error): void {
    const { scope, held } = reentry;
    const gate = scope.lease.gates.gate(this.key);
    const entered = () => {
      try {
        this.hasEntered(gate, reentry);
      } catch (error) {
        return waiter.refuse(error as Error);
      }
      waiter.grant(held);
    };
    this.place = gate;
    gate.wait(waiter, shareMode(held, this.terms.type), entered, departed);
    this.services.deadlocks.add(waiter, gate);
  }

  /** @throws LockUpgradeError as {@link closeGatesAbove} does; the gate is left then */
  private hasEntered(gate: ShareGate, reentry: Reentry): void {
    try {
      this.above = closeGatesAbove(reentry, this.terms.type);
    } catch (error) {
      gate.leave();
      throw error;
    }
    this.gate = gate;
  }

  private leaveGate(): void {
    const { entered } = this;
    this.gate = undefined;
    this.above = [];
    for (const gate of entered) gate.leave();
  }

  private get queue(): LockQueues {
    return this.table.queueOf(this.terms.type, this.name, this.key);
  }
}
