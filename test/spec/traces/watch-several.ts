import type { LockBackend } from '../../../lib/backends/lock-backend.js';
import { HoldAndWait } from '../../../lib/engine/several/hold-and-wait.js';
import { LocksOfOneService } from '../../../lib/engine/several/locks-of-one-service.js';
import { WantedLock } from '../../../lib/engine/several/wanted-lock.js';
import { type SeveralStep, type SimulationTrace, tracedBackends } from '../../chaos/simulation/simulation-trace.js';

/** Of classes that keep these to themselves. */
interface Inside {
  readonly services: { readonly backend: LockBackend };
}
interface InsideHoldAndWait {
  readonly terms: { readonly all: readonly WantedLock[] };
  readonly longestHold: number;
  takeInOrder(): Promise<boolean>;
}
interface InsideLocks {
  attemptAt(wanted: WantedLock): { readonly owner: string };
}

/** One call. */
interface Watched {
  readonly caller: number;
  readonly trace: SimulationTrace;
  readonly process: string;
  hasAll: boolean;
}

const ofLock = new WeakMap<WantedLock, Watched>();
/** The owner under which a call holds a lock, as far as its trace knows. */
const owners = new WeakMap<WantedLock, string>();

/**
 * Writes into the traces of simulations what each call for several names does between its requests. The engine does not
 * report that, so its methods are replaced by ones that call them, in this whole process.
 */
export function watchSeveral(): void {
  const locks = LocksOfOneService.prototype;
  const inLocks = locks as unknown as InsideLocks;
  const wanted = WantedLock.prototype;
  const holding = HoldAndWait.prototype as unknown as InsideHoldAndWait;
  const { takeMissing, createLease, left } = locks;
  const { attemptAt } = inLocks;
  const { fulfil, wait, giveBack } = wanted;
  const { takeInOrder } = holding;

  locks.takeMissing = function (this: LocksOfOneService, ...args) {
    come(this);
    return takeMissing.apply(this, args);
  };
  inLocks.attemptAt = function (this: InsideLocks, lock) {
    const attempt = attemptAt.call(this, lock);
    const watched = ofLock.get(lock);
    watched?.trace.askers.set(attempt.owner, watched.caller);
    return attempt;
  };
  locks.createLease = function (this: LocksOfOneService) {
    const watched = watchedIn(this);
    if (watched !== undefined) watched.hasAll = true;
    return createLease.call(this);
  };
  locks.left = function (this: LocksOfOneService) {
    const watched = watchedIn(this);
    if (!watched?.hasAll) note(watched, { what: 'leaves' });
    left.call(this);
  };
  wanted.fulfil = function (this: WantedLock, attempt, token) {
    fulfil.call(this, attempt, token);
    owners.set(this, attempt.owner);
  };
  wanted.wait = function (this: WantedLock, ...args) {
    note(ofLock.get(this), { what: 'waits', key: this.key });
    return wait.apply(this, args).then(() => noteGot(this));
  };
  wanted.giveBack = function (this: WantedLock) {
    noteGot(this);
    const owner = owners.get(this);
    owners.delete(this);
    if (owner !== undefined) note(ofLock.get(this), { what: 'gives', key: this.key, owner });
    return giveBack.call(this);
  };
  holding.takeInOrder = async function (this: InsideHoldAndWait) {
    const watched = ofLock.get(this.terms.all[0]);
    note(watched, { what: 'holds', longestHold: this.longestHold });
    const hasAll = await takeInOrder.call(this);
    if (!hasAll) note(watched, { what: 'over' });
    return hasAll;
  };
}

/** Before the first request of the call. What it shares with a scope around it, it need not ask for. */
function come(locks: LocksOfOneService): void {
  const traced = tracedBackends.get((locks as unknown as Inside).services.backend);
  if (traced === undefined) return;
  const { trace, process } = traced;
  const known = watchedIn(locks);
  if (known !== undefined) {
    if (locks.all.some((one) => one.shared !== !ofLock.has(one))) note(known, { what: 'unspecified' });
    return;
  }
  const watched = { caller: trace.nextCaller(), trace, process, hasAll: false };
  const own = locks.all.filter(({ shared }) => !shared);
  for (const one of own) ofLock.set(one, watched);
  note(own.length === 0 ? undefined : watched, { what: 'comes', keys: own.map(({ key }) => key) });
}

function watchedIn(locks: LocksOfOneService): Watched | undefined {
  return locks.all.map((one) => ofLock.get(one)).find((watched) => watched !== undefined);
}

/** It has got the lock by waiting for it, which its trace may not have heard of. */
function noteGot(lock: WantedLock): void {
  const owner = lock.held?.owner;
  if (owner === undefined || lock.shared || owners.get(lock) === owner) return;
  owners.set(lock, owner);
  note(ofLock.get(lock), { what: 'got', key: lock.key, owner });
}

type WithoutCaller<T> = T extends unknown ? Omit<T, 'caller'> : never;

function note(watched: Watched | undefined, step: WithoutCaller<SeveralStep>): void {
  watched?.trace.ofSeveral(watched.process, { caller: watched.caller, ...step } as SeveralStep);
}
