import type { AcquireRequest, LockType } from '../../backends/lock-backend.js';
import type { Interference, PendingAcquisition } from '../lease/pending-acquisitions.js';
import type { Waiter } from './waiter.js';

/** What the backend is asked for on behalf of one waiter. It is a class for the reason given in collections/list-of.ts. */
export class WaiterRequest implements AcquireRequest, PendingAcquisition {
  previous: PendingAcquisition | undefined = undefined;
  next: PendingAcquisition | undefined = undefined;
  interference: Interference | undefined = undefined;
  readonly type: LockType;
  readonly owner: string;
  readonly leaseTime: number;

  constructor(
    readonly key: string,
    { owner, terms }: Pick<Waiter<never>, 'owner' | 'terms'>,
    /** It grows until the request is sent: callers that arrive before that are handed the lock, too. */
    public reserve: number,
    readonly fairWaitTimeout: number,
    readonly preferWriters: boolean,
  ) {
    this.type = terms.type;
    this.owner = owner;
    this.leaseTime = terms.leaseTime;
  }
}
