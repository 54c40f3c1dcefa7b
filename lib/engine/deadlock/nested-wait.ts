import type { HeldLock, LockWaiter } from '../lease/held-lock.js';
import { type LockScope, liveFrom, type ScopedLease } from '../scope/lock-scope.js';
import { type EnteredGate, ShareGate, type ShareGates } from '../scope/share-gate.js';
import type { JournalRecord } from './journal-record.js';

/** Where a caller waits: in the queue of a lock, or at the gate of a share. */
export interface WaitingPlace {
  /** The lock's key. */
  readonly key: string;
  /** Refuses a waiter that is in this place. */
  dismiss(waiter: LockWaiter, error: Error): void;
}

/** Gates at which somebody has waited for long. Those inside such a gate are known to the waiters by its id. */
const gateIds = new WeakMap<EnteredGate, string>();
const GATE = '/gate/';
let gateCount = 0;

/** @param clientId stands before a new id, which no other process has */
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
  /** The owners it waited for at the last beat. */
  holders: readonly string[] = [];
  /** When it began, by the backend's time; undefined until it is first written down. */
  began: number | undefined;
  beat = 0;
  /** A deadlock that may refuse it is being confirmed. */
  confirming = false;

  /** @param since when it began, on the monotonic clock */
  constructor(
    readonly id: string,
    readonly waiter: LockWaiter,
    readonly place: WaitingPlace,
    readonly since: number,
    private readonly scope: LockScope,
  ) {}

  /** The id of the gate that it waits at; `undefined` in the queue of a lock. */
  gateId(clientId: string): string | undefined {
    return this.place instanceof ShareGate ? gateIdOf(this.place, clientId) : undefined;
  }

  /** Its caller still waits, and holds something. */
  get goesOn(): boolean {
    return !this.waiter.settled && this.locks.length > 0;
  }

  /** The locks that are held around the caller now, the innermost first. */
  get locks(): readonly HeldLock[] {
    return this.leases.flatMap(({ locks }) => locks);
  }

  /** By what others wait for the caller: its owners, and the gates that it is inside of. */
  get holds(): ReadonlySet<string> {
    const holds = new Set(this.locks.map(({ owner }) => owner));
    for (const { gates } of this.leases) addGates(gates, holds);
    return holds;
  }

  /** The record that is written about it. Its caller holds a lock, and it has a start time. */
  get record(): JournalRecord {
    const { beat, holders, waiter, locks } = this;
    const began = this.began as number;
    const record = { lock: waiter.name, owner: locks[0].owner, holders, began, beat };
    const { waitTime } = waiter.terms;
    return waitTime === Number.POSITIVE_INFINITY ? record : { ...record, ends: began + waitTime };
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
