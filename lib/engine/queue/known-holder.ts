import type { Busy } from '../../backends/lock-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import type { HeldLock } from '../lease/held-lock.js';
import type { Moment } from '../lease/lease-clock.js';
import type { KnownHolder } from '../waiting/wait-errors.js';

/** An answer of the backend that named another holder. */
export interface SeenBusy {
  readonly busy: Busy;
  readonly at: Moment;
}

/** What is known of who holds a lock, from this process (`held`), or from the last answer of the backend. */
export function knownHolder(
  { clock, holders }: AcquisitionContext,
  held: HeldLock | undefined,
  seen: SeenBusy | undefined,
): KnownHolder {
  if (held !== undefined) {
    const remaining = left(held.validFor, clock.age(held.confirmed));
    return { holder: held.owner, here: true, remaining, fixed: held.fixed, client: holders.own(held) };
  }
  const { busy, at } = seen ?? {};
  const unlimited = busy === undefined || at === undefined || busy.remaining < 0;
  const remaining = unlimited ? -1 : left(busy.remaining, clock.age(at));
  const holder = busy?.holder;
  const client = holders.known(holder);
  return { holder, here: false, remaining, client, unrecorded: holders.unrecorded(holder) };
}

function left(time: number, age: number): number {
  return Math.max(0, Math.round(time - age));
}
