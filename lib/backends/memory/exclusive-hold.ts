import type { LockState, LockType } from '../lock-backend.js';
import { type Hold, isReadWrite, remaining } from './hold.js';

/** The one owner of a reentrant, fair or fenced lock: these three exclude each other under one name, as they do in Redis. */
export class ExclusiveHold implements Hold {
  constructor(
    private owner: string,
    private deadline: number,
  ) {}

  isOver(now: number): boolean {
    return this.deadline <= now;
  }

  has(owner: string, type: LockType): boolean {
    return this.owner === owner && !isReadWrite(type);
  }

  admits(): boolean {
    return false;
  }

  put(owner: string, _type: LockType, deadline: number): void {
    this.owner = owner;
    this.deadline = deadline;
  }

  remove(): void {
    this.deadline = Number.NEGATIVE_INFINITY;
  }

  longest(): readonly [owner: string, deadline: number] {
    return [this.owner, this.deadline];
  }

  state(now: number): Pick<LockState, 'mode' | 'owners'> {
    return { mode: 'exclusive', owners: [{ owner: this.owner, remaining: remaining(this.deadline, now) }] };
  }
}
