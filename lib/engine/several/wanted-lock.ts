import type { Milliseconds } from '../duration.js';
import type { HeldLock } from '../lease/held-lock.js';
import type { Moment } from '../lease/lease-clock.js';
import type { LockEngine } from '../lock-engine.js';
import type { AcquisitionTerms } from '../lock-options.js';
import { findReentry, type Reentry } from '../scope/lock-scope.js';
import { gatesAbove, isThere, shareMode } from '../scope/reentry.js';
import type { EnteredGate, ShareGate } from '../scope/share-gate.js';
import { Waiter } from '../waiting/waiter.js';

/** One of several locks that are acquired together: to be taken from its queue, or to be shared with the scope that holds it. */
export class WantedLock {
  readonly key: string;
  /** It is in hand. */
  held: HeldLock | undefined;
  /** Entered, while a shared one is claimed or in hand. */
  private gate: ShareGate | undefined;
  /** Closed to readers beside it, while the gate is entered. */
  private above: readonly EnteredGate[] = [];
  private reentry: Reentry | undefined;
  private waiter: Waiter | undefined;

  constructor(
    private readonly engine: LockEngine,
    readonly name: string,
    private readonly terms: AcquisitionTerms,
    what: string,
  ) {
    this.key = engine.keyOf(name, what);
    this.look();
  }

  /** What its share is to leave in the end. */
  get entered(): readonly EnteredGate[] {
    return this.gate === undefined ? [] : [this.gate, ...this.above];
  }

  get shared(): boolean {
    return this.reentry !== undefined;
  }

  /** What is in hand is not worth having any more: lost, over, or shared with a scope that has ended. */
  get stale(): boolean {
    const { engine, held, reentry } = this;
    if (held === undefined || engine.context.watchdog.judge(held) !== 'held') return true;
    return reentry !== undefined && !isThere(engine, reentry);
  }

  get holder(): string | undefined {
    return this.reentry?.held.owner;
  }

  /**
   * Looks whether the running flow holds it already; the answer changes when a scope ends while other locks are waited for.
   *
   * @throws LockUpgradeError and LockConfigurationError as {@link shareMode} does
   */
  look(): void {
    this.reentry = findReentry(this.engine, this.key, this.terms.type);
    if (this.reentry !== undefined) shareMode(this.reentry.held, this.terms.type);
  }

  /** Reserves it for one attempt. False: that would mean to wait. */
  claim(): boolean {
    if (this.reentry === undefined) return this.queue.claim();
    const { scope, held } = this.reentry;
    const mode = shareMode(held, this.terms.type);
    const gate = scope.lease.gate(this.key);
    if (!gate.open(mode)) return false;
    this.above = gatesAbove(this.reentry, this.terms.type);
    gate.enter(mode);
    this.gate = gate;
    return true;
  }

  unclaim(): void {
    if (this.reentry === undefined) this.queue.unclaim();
    else this.leaveGate();
  }

  /** Ends a claim: the backend gave it to `owner`. */
  fulfil(owner: string, sent: Moment, token: number, validUntil: number | undefined): void {
    this.held = this.queue.fulfil(owner, this.terms, sent, token);
    this.held.lateCopiesUntil = validUntil;
  }

  /**
   * Where it is shared while the clocks have parted: asks the backend about it.
   *
   * @throws BackendError when it gives no answer
   */
  async makeCertain(): Promise<void> {
    const { watchdog } = this.engine.context;
    const held = this.reentry?.held;
    if (held !== undefined && watchdog.judge(held) === 'unsure') await watchdog.confirmNow(held);
  }

  /** Ends a claim of a lock that is shared. */
  share(): void {
    this.held = this.reentry?.held;
  }

  /** Waits for this one alone, like any caller, and takes it. */
  wait(waitTime: Milliseconds, scoped: boolean, departed: () => Error): Promise<void> {
    return new Promise((resolve, reject) => {
      const taken = (held: HeldLock) => {
        this.held = held;
        resolve();
      };
      const terms = { ...this.terms, waitTime };
      const { context, newOwner } = this.engine;
      const waiter: Waiter = new Waiter(this.name, newOwner, terms, context.runtime, taken, reject);
      waiter.scoped = scoped;
      this.waiter = waiter;
      if (this.reentry === undefined) this.queue.enqueue(waiter);
      else this.waitAtGate(this.reentry, waiter, departed);
    });
  }

  /** Ends a {@link wait}, which rejects. */
  leaveLine(error: Error): void {
    const { waiter } = this;
    if (waiter === undefined || waiter.settled) return;
    if (this.reentry === undefined) this.queue.dismiss(waiter, error);
    else waiter.refuse(error);
  }

  /** Lets a fixed lease begin now that has aged while others were waited for. A shared lock keeps the lease that it has. */
  async refresh(): Promise<void> {
    const { held, reentry } = this;
    const { clock, watchdog } = this.engine.context;
    if (held === undefined || reentry !== undefined || !held.fixed) return;
    if (clock.age(held.confirmed) > held.leaseTime / 10) await watchdog.extend(held, held.leaseTime);
  }

  async giveBack(): Promise<void> {
    const { held } = this;
    this.held = undefined;
    if (this.gate !== undefined) this.leaveGate();
    else if (held !== undefined) await held.keeper.giveBack(held);
  }

  private waitAtGate(reentry: Reentry, waiter: Waiter, departed: () => Error): void {
    const { scope, held } = reentry;
    const mode = shareMode(held, this.terms.type);
    const gate = scope.lease.gate(this.key);
    const enter = () => {
      if (waiter.settled) return gate.leave();
      try {
        this.above = gatesAbove(reentry, this.terms.type);
      } catch (error) {
        gate.leave();
        return waiter.refuse(error as Error);
      }
      this.gate = gate;
      waiter.grant(held);
    };
    if (gate.open(mode)) {
      gate.enter(mode);
      return enter();
    }
    gate.wait(waiter, mode, enter);
    waiter.watch(() => {
      gate.abandon(waiter);
      return departed();
    });
  }

  private leaveGate(): void {
    const { entered } = this;
    this.gate = undefined;
    this.above = [];
    for (const gate of entered) gate.leave();
  }

  private get queue() {
    return this.engine.queue(this.terms.type, this.name, this.key);
  }
}
