import type { NewestCall } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { Attempt } from '../ask/attempt.js';
import { Doubt } from '../ask/doubt.js';
import { type LockBusyError, LockSupersededError } from '../errors.js';
import type { EventHub } from '../events/event-hub.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { Caller } from './caller.js';
import { type InLine, type KnownHolder, lockBusyError, lockNotAcquired } from './wait-errors.js';

/** A caller that waits for one lock. */
export class Waiter<Granted> extends Caller<Granted> implements InLine {
  declare readonly terms: AcquisitionTerms;

  /** The links of the queue that contains this waiter. */
  previous: this | undefined;
  next: this | undefined;

  /** The waiter's pending request. */
  attempt: Attempt | undefined;
  /**
   * For a fair lock: what the earlier requests of the present owner id may have left. Undefined if they left nothing.
   */
  doubt: Doubt | undefined;
  /** The backend has already released this waiter's owner id, so the next acquisition needs a new one. */
  ownerSpent = false;
  /** Whether the waiter has already retried once because the lock's holder was just being released. */
  askedAgain = false;
  /** A reader that goes past those in line, because it waited right behind a reader whose turn has come. */
  follows = false;
  /** For a caller of whom only the newest waits: what the backend has to know of it. */
  newest: NewestCall | undefined = undefined;
  /** A message for the waiter arrived while its request was pending. */
  woken = false;
  private ownerId: string | undefined;

  constructor(
    name: string,
    private readonly newOwner: () => string,
    terms: AcquisitionTerms,
    runtime: Runtime,
    granted: (granted: Granted) => void,
    refused: (error: Error) => void,
  ) {
    super(name, terms, runtime, granted, refused);
  }

  /** Created lazily, because a waiter that receives the lock by hand-off uses its predecessor's owner id. */
  get owner(): string {
    this.ownerId ??= this.newOwner();
    return this.ownerId;
  }

  /** Asks under the owner id of this process's place in the line from now on. */
  takePlace(ownerId: string): void {
    this.ownerId = ownerId;
    this.ownerSpent = false;
  }

  /** Asks under another owner id if it has asked under this one, which was given up. */
  dropPlace(ownerId: string): void {
    if (this.ownerId === ownerId) this.renewOwner();
  }

  /** Notes what a request may have left, if the waiter keeps its owner id. */
  note(attempt: Attempt): void {
    if (!attempt.leavesTraces) return;
    this.doubt ??= new Doubt();
    this.doubt.note(attempt);
  }

  /** Abandons the current owner id. Locks that the backend holds for that id no longer belong to this waiter. */
  renewOwner(): void {
    this.ownerId = this.doubt = undefined;
    this.ownerSpent = false;
  }

  /** Calls that were superseded in favour of this one would otherwise be done by nobody. */
  override get keepsWaiting(): boolean {
    return this.scoped || (this.newest?.superseded ?? 0) > 0;
  }

  get what(): string {
    return `the lock '${this.name}'`;
  }

  get notServed(): string {
    return lockNotAcquired(this.name);
  }

  busyError(holder: KnownHolder): LockBusyError {
    return lockBusyError(this, holder);
  }

  announceBusy(error: LockBusyError, events: EventHub): void {
    if (!events.hasListener('busy')) return;
    const { remainingTime, holder, holderClient } = error;
    const superseded = error instanceof LockSupersededError;
    const { type, group, method } = this.terms;
    events.emit('busy', { name: this.name, type, group, method, remainingTime, holder, holderClient, superseded });
  }
}
