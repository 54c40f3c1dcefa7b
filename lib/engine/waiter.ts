import type { Runtime } from '../backends/runtime.js';
import { Caller } from './caller.js';
import type { HeldLock } from './held-lock.js';
import type { Moment } from './lease-clock.js';
import type { AcquisitionTerms } from './lock-options.js';

export type { Departure } from './caller.js';

/** One caller that wants one lock. */
export class Waiter<Granted = HeldLock> extends Caller<Granted> {
  declare readonly terms: AcquisitionTerms;

  /** Links of the queue that it stands in. */
  previous: Waiter | undefined;
  next: Waiter | undefined;

  /** When its acquisition that is under way was sent. */
  sent: Moment | undefined;
  /** An acquisition of it got no answer: Redis may hold the lock for its owner. */
  unsettled = false;
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

  /** Its owner was removed by force: from now on it is another one. */
  renew(): void {
    this.ownerId = undefined;
  }

  get what(): string {
    return `the lock '${this.name}'`;
  }
}
