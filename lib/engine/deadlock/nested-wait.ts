import type { HeldLock, LockWaiter } from '../hold/held-lock.js';
import { type LockScope, latestCall, liveFrom, type ScopedLease } from '../scope/lock-scope.js';
import { type EnteredGate, ShareGate, type ShareGates } from '../scope/share-gate.js';
import type { JournalRecord, SharedLock } from './journal-record.js';
import { seemsUnawaited } from './victim-order.js';

/** The queue of a lock, or the gate of a share, where a caller waits. */
export interface WaitingPlace {
  /** The lock's key. */
  readonly key: string;
  /** Refuses a waiter of this queue or gate. */
  dismiss(waiter: LockWaiter, error: Error): void;
}

/**
 * Ids of gates at which a caller has waited for long. In the journal, the id of a gate stands for the callers inside
 * it.
 */
const gateIds = new WeakMap<EnteredGate, string>();
const GATE = '/gate/';
let gateCount = 0;

/** @param clientId makes a new id unique among processes */
function gateIdOf(gate: ShareGate, clientId: string): string {
  let id = gateIds.get(gate);
  if (id === undefined) {
    id = `${clientId}${GATE}${++gateCount}`;
    gateIds.set(gate, id);
  }
  return id;
}

/** Whether a holder is the gate of a share, and not an owner. */
export function isGateId(holder: string): boolean {
  return holder.includes(GATE);
}

/** The wait of a caller that runs in a lock scope. */
export class NestedWait {
  /** The owners and gates that it waits for, as of the last heartbeat. */
  private holders: readonly string[] = [];
  /** The same for a lock that several hold by `permits`. */
  private shared: SharedLock | undefined;
  /** When the wait began, by the backend's time; undefined until it is first written to the journal. */
  began: number | undefined;
  /** Whether it probably belongs to a branch that nobody awaits. Decided when the wait is dated. */
  isBranch = false;
  beat = 0;
  /** Whether a possible deadlock, for which this wait may be refused, is being confirmed. */
  confirming = false;
  private readonly callsBefore = latestCall();

  /** @param since when the wait began, on the monotonic clock */
  constructor(
    readonly id: string,
    readonly waiter: LockWaiter,
    readonly place: WaitingPlace,
    readonly since: number,
    private readonly scope: LockScope,
  ) {}

  /**
   * Fixes the wait's place in the order of all waits, before it is first written to the journal. This order must not
   * change, because exactly one wait of a cycle may be its last: see victim-order.ts.
   */
  date(began: number): void {
    this.began = began;
    this.isBranch = seemsUnawaited(this.scope, this.callsBefore);
  }

  /** @param holders the gate where it waits, or as many of the lock's owners as are written to the journal */
  noteHolders(holders: readonly string[]): void {
    const { permits = 1 } = this.waiter.terms;
    const several = permits > 1 && holders.length > 1;
    this.holders = several ? [] : holders;
    // If fewer than `permits` are known, or hold the lock, the wait ends although all of them wait.
    this.shared = several && permits <= holders.length ? { holders, permits } : undefined;
  }

  /** The id of the gate where the caller waits; `undefined` in the queue of a lock. */
  gateId(clientId: string): string | undefined {
    return this.place instanceof ShareGate ? gateIdOf(this.place, clientId) : undefined;
  }

  /** Whether the caller still waits and holds a lock. */
  get continues(): boolean {
    return !this.waiter.settled && this.locks.length > 0;
  }

  /** The locks that are held around the caller now, the innermost first. */
  get locks(): readonly HeldLock[] {
    return this.leases.flatMap(({ locks }) => locks);
  }

  /** The owner ids and gates through which other callers can be waiting for this one. */
  get holds(): ReadonlySet<string> {
    const holds = new Set(this.locks.map(({ owner }) => owner));
    for (const { gates } of this.leases) addGates(gates, holds);
    return holds;
  }

  /** The wait's journal entry. Read it only while the caller holds a lock and the wait has a date. */
  get record(): JournalRecord {
    const { beat, holders, shared, waiter, locks } = this;
    const began = this.began as number;
    const ends = began + waiter.terms.waitTime;
    return {
      lock: waiter.name,
      owner: locks[0].owner,
      holders,
      ...(shared && { shared }),
      began,
      ...(this.isBranch && { isBranch: true }),
      ...(ends < Number.POSITIVE_INFINITY && { ends }),
      beat,
    };
  }

  private get leases(): readonly ScopedLease[] {
    const leases: ScopedLease[] = [];
    for (let scope = liveFrom(this.scope); scope !== undefined; scope = liveFrom(scope.parent)) {
      leases.push(scope.lease);
    }
    return leases;
  }
}

function addGates({ entered }: ShareGates, ids: Set<string>): void {
  for (const gate of entered) {
    const id = gateIds.get(gate);
    if (id !== undefined) ids.add(id);
    addGates(gate.share, ids);
  }
}
