import type { AcquireRequest, LockType } from '../../backends/lock-backend.js';
import type { Interference, PendingAcquisition } from '../lease/pending-acquisitions.js';
import type { Waiter } from './waiter.js';

/** What the backend is asked for one waiter. A class, for the reason in list-of.ts. */
export class WaiterRequest implements AcquireRequest, PendingAcquisition {
  previous: PendingAcquisition | undefined = undefined;
  next: PendingAcquisition | undefined = undefined;
  interference: Interference | undefined = undefined;
  readonly type: LockType;
  readonly owner: string;
  readonly leaseTime: number;

  constructor(
    readonly key: string,
    { owner, terms }: Waiter,
    /** Grows while it was not sent: who comes meanwhile is handed the lock. */
    public reserve: number,
    readonly fairWaitTimeout: number,
    readonly preferWriters: boolean,
  ) {
    this.type = terms.type;
    this.owner = owner;
    this.leaseTime = terms.leaseTime;
  }
}
