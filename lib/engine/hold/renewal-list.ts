import type { Moment } from '../time/lease-clock.js';
import type { KeptLease } from './standby.js';

/** A thing that the backend keeps for this process until its lease ends: a lock or a permit. */
export interface Renewable<Thing extends Renewable<Thing>> extends KeptLease {
  /** The requested lease in milliseconds. Each renewal sets the same. */
  readonly leaseTime: number;
  /** Whether the user chose the lease, so that it is not renewed. */
  readonly fixed: boolean;
  /** The moment before the last confirmed command that set the lease was sent. */
  readonly confirmed: Moment;
  /** Milliseconds of lease from {@link confirmed} on. It differs from leaseTime after an extension. */
  readonly validFor: number;
  /** When the lease ends unless it is confirmed again, on the monotonic clock. */
  readonly leaseEnd: number;
  /** Set at most once. */
  readonly lost: Error | undefined;
  /** Records that the backend has set the lease to `leaseTime`, by a command that was sent after `sent`. */
  confirm(sent: Moment, leaseTime: number): void;

  /** The watchdog's list that contains this thing, and its neighbours there. */
  list: RenewalList<Thing> | undefined;
  earlier: Thing | undefined;
  later: Thing | undefined;
}

/** Things in the order in which their leases end unless confirmed again. A thing is in at most one list. */
export class RenewalList<Thing extends Renewable<Thing>> {
  first: Thing | undefined;
  private last: Thing | undefined;

  push(thing: Thing): void {
    // Answers arrive roughly in the order of the requests, and most leases have the same length. So the right position
    // is at or near the end.
    const { leaseEnd } = thing;
    let earlier = this.last;
    while (earlier !== undefined && earlier.leaseEnd > leaseEnd) earlier = earlier.earlier;
    const later = earlier === undefined ? this.first : earlier.later;
    thing.list = this;
    thing.earlier = earlier;
    thing.later = later;
    if (earlier === undefined) this.first = thing;
    else earlier.later = thing;
    if (later === undefined) this.last = thing;
    else later.earlier = thing;
  }

  remove(thing: Thing): void {
    if (thing.list !== this) return;
    if (thing.earlier === undefined) this.first = thing.later;
    else thing.earlier.later = thing.later;
    if (thing.later === undefined) this.last = thing.earlier;
    else thing.later.earlier = thing.earlier;
    thing.earlier = thing.later = thing.list = undefined;
  }

  /** Like {@link moveTo}, also when a standby has changed the ends of leases, and with them their order. */
  sortInto(other: RenewalList<Thing>): void {
    const all: Thing[] = [];
    for (let thing = this.first; thing !== undefined; thing = thing.later) all.push(thing);
    all.sort((one, next) => one.leaseEnd - next.leaseEnd);
    for (const thing of all) {
      this.remove(thing);
      other.push(thing);
    }
  }

  moveTo(other: RenewalList<Thing>): void {
    for (let thing = this.first; thing !== undefined; thing = this.first) {
      this.remove(thing);
      other.push(thing);
    }
  }
}
