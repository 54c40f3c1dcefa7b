import { isReadWrite, type LockState, type LockType } from '../lock-requests.js';
import { type LockRecord, remaining } from './lock-record.js';

/** The one owner of a reentrant, fair or fenced lock. Under one name, these three types exclude each other, as in Redis. */
export class ExclusiveRecord implements LockRecord {
  constructor(
    private owner: string,
    private deadline: number,
  ) {}

  isEmpty(now: number): boolean {
    return this.deadline <= now;
  }

  isHeldBy(owner: string, type: LockType): boolean {
    return this.owner === owner && !isReadWrite(type);
  }

  admits(): boolean {
    return false;
  }

  set(owner: string, _type: LockType, deadline: number): void {
    this.owner = owner;
    this.deadline = deadline;
  }

  remove(): void {
    this.deadline = Number.NEGATIVE_INFINITY;
  }

  evict(): void {
    this.remove();
  }

  lastToExpire(): readonly [owner: string, deadline: number] {
    return [this.owner, this.deadline];
  }

  state(now: number): Pick<LockState, 'mode' | 'owners'> {
    return { mode: 'exclusive', owners: [{ owner: this.owner, remaining: remaining(this.deadline, now) }] };
  }
}
