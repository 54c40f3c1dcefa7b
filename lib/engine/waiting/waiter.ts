import type { Runtime } from '../../backends/runtime.js';
import type { HeldLock } from '../lease/held-lock.js';
import type { Moment } from '../lease/lease-clock.js';
import type { AcquisitionTerms } from '../lock-options.js';
import { Caller } from './caller.js';

export type { Departure } from './caller.js';

/** One caller that wants one lock. */
export class Waiter<Granted = HeldLock> extends Caller<Granted> {
  declare readonly terms: AcquisitionTerms;

  /** Links of the queue that it stands in. */
  previous: Waiter | undefined;
  next: Waiter | undefined;

  /** When its acquisition that is under way was sent. */
  sent: Moment | undefined;
  /** Of a fair waiter: acquisitions without an answer, which the backend may execute until this time of its clock. */
  lateCopiesUntil: number | undefined;
  /** A message for it came while its acquisition was under way. */
  woken = false;
  private ownerId: string | undefined;

  constructor(
    name: string,
    private readonly newOwner: () => string,
    terms: AcquisitionTerms,
    runtime: Runtime,
    granted: (held: Granted) => void,
    refused: (error: Error) => void,
  ) {
    super(name, terms, runtime, granted, refused);
  }

  /** Made when it is first asked for: who is handed the lock has its predecessor's. */
  get owner(): string {
    this.ownerId ??= this.newOwner();
    return this.ownerId;
  }

  /** An acquisition may be executed until this time of the backend's clock, or has been. */
  noteLateCopies(validUntil = 0): void {
    this.lateCopiesUntil = Math.max(this.lateCopiesUntil ?? 0, validUntil);
  }

  /** What the backend may hold for the owner so far is nobody's from now on. */
  renewOwner(): void {
    this.ownerId = this.lateCopiesUntil = undefined;
  }

  get what(): string {
    return `the lock '${this.name}'`;
  }
}
