import type { Runtime } from '../../backends/runtime.js';
import type { Moment } from '../lease/lease-clock.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { Caller } from './caller.js';

export type { Departure } from './caller.js';

/** A caller that waits for one lock. */
export class Waiter<Granted> extends Caller<Granted> {
  declare readonly terms: AcquisitionTerms;

  /** Links of the queue that it is in. */
  previous: this | undefined;
  next: this | undefined;

  /** When its current acquisition was sent; `undefined`: none is under way. */
  sent: Moment | undefined;
  /** For a fair lock: until this time of the backend's clock, earlier acquisitions without an answer may still be executed. */
  lateCopiesUntil: number | undefined;
  /** The backend has released its owner: the next acquisition needs another one. */
  ownerSpent = false;
  /** A message for it arrived while its acquisition was under way. */
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

  /** Created when it is first needed: a waiter that is handed the lock uses its predecessor's. */
  get owner(): string {
    this.ownerId ??= this.newOwner();
    return this.ownerId;
  }

  /** An acquisition may have been executed, or may still be until this time of the backend's clock. */
  noteLateCopies(validUntil = 0): void {
    this.lateCopiesUntil = Math.max(this.lateCopiesUntil ?? 0, validUntil);
  }

  /** Gives up the current owner: whatever the backend holds for it belongs to nobody from now on. */
  renewOwner(): void {
    this.ownerId = this.lateCopiesUntil = undefined;
    this.ownerSpent = false;
  }

  get what(): string {
    return `the lock '${this.name}'`;
  }
}
