import type { BackendError } from '../backends/lock-backend.js';
import { LockBusyError, LockConfigurationError, LockUnavailableError } from '../engine/errors.js';
import type { LockLease } from '../engine/lease/lock-lease.js';
import { acquireAllOrNone, type BusyLock, type WantedGroup } from '../engine/several/all-or-none.js';
import type { Wanted } from '../engine/several/hold-and-wait.js';
import type { LocksOfOneService } from '../engine/several/locks-of-one-service.js';
import { type Duration, type Milliseconds, toLeaseTime } from '../engine/terms/duration.js';
import type { Caller } from '../engine/waiting/waiter.js';
import { CombinedLease, isAged, lockLeasesOf, type MemberLease } from './combined-lease.js';
import { CombinedLock } from './combined-lock.js';
import { acquireThrough, type LeaseRequest, type LockHandle } from './lock-handle.js';

/**
 * Redisson's RMultiLock: several locks, of which either all are acquired or none. They may be of any type and of any
 * service.
 *
 * Normally it holds no lock while it waits for another one. A caller that was passed over for long may hold some of the
 * locks for up to a second, so that it is served too. No order of the locks can cause a deadlock. Locks of one service
 * and type are acquired by one command if the backend can. There is one lease for all of them. It is held while all
 * members are held. It has a fencing token for each member, and its `run()` is a scope in each service.
 *
 * ```ts
 * const both = locks.getMultiLock(locks.getLock('stock:1'), archive.getLock('stock:2'));
 * await using lease = await both.lock();
 * ```
 *
 * @publicApi
 */
export class MultiLock extends CombinedLock {
  /** @internal */
  readonly needed: number;
  /** Locks of one service and type are acquired together. */
  private readonly groups: readonly (readonly LockHandle[])[];

  /** @internal */
  constructor(locks: readonly LockHandle[]) {
    super(
      'getMultiLock()',
      locks.flatMap((lock) => lock?.components ?? [lock]),
    );
    this.needed = this.members.length;
    refuseContradictions(this.members);
    this.groups = groupByService(this.members);
  }

  /** @internal */
  override get components(): readonly LockHandle[] {
    return this.members;
  }

  /** @internal */
  async acquireLease(request: LeaseRequest): Promise<MemberLease> {
    const { groups, engines, name } = this;
    if (groups.length === 1) return acquireGroup(groups[0], request);
    const terms = this.waitTermsOf(request);
    const { leaseTime, tentative } = request;
    const what = `lock() of '${name}'`;
    const fixed = leaseTime === undefined ? undefined : toLeaseTime(leaseTime, `${what}: leaseTime`);
    const memberRequest = { leaseTime, tentative, outageTimeout: terms.outageTimeout, signal: terms.signal };
    const wanted = groups.map((group) => toWantedGroup(group, memberRequest));
    const { runtime } = engines[0].settings;
    const acquire = () => acquireAllOrNone(wanted, name, terms, fixed, runtime);
    const leases = await tracedByAll(wanted, acquire);
    return new CombinedLease(leases, leases.length, engines);
  }
}

/** @throws LockConfigurationError when two members are the same lock in ways that exclude each other */
function refuseContradictions(members: readonly LockHandle[]): void {
  const known = new Set<string>();
  for (const member of members) {
    for (const { settings } of member.engines) {
      const id = `${settings.clientId} ${member.name}`;
      if (known.has(id)) {
        throw new LockConfigurationError(
          `getMultiLock(): the lock '${member.name}' is given in two ways that exclude each other: it would wait for itself`,
        );
      }
      known.add(id);
    }
  }
}

/** Groups locks by service and type. */
function groupByService(members: readonly LockHandle[]): readonly (readonly LockHandle[])[] {
  const groups = new Map<string | LockHandle, LockHandle[]>();
  for (const member of members) {
    const { commandGroup } = member;
    const id = commandGroup ? `${commandGroup.engine.settings.clientId} ${commandGroup.type}` : member;
    groups.set(id, [...(groups.get(id) ?? []), member]);
  }
  return [...groups.values()];
}

function acquireGroup(group: readonly LockHandle[], request: LeaseRequest): Promise<MemberLease> {
  const [first] = group;
  if (first.commandGroup === undefined || group.length === 1) return first.acquireLease(request);
  const { engine, type } = first.commandGroup;
  return acquireThrough(engine, namesOf(group), type, request);
}

function toWantedGroup(group: readonly LockHandle[], request: LeaseRequest): LocksOfOneService | OtherKind {
  const [{ commandGroup }] = group;
  if (commandGroup === undefined) return new OtherKind(group[0], request);
  const { engine, type } = commandGroup;
  const { tentative, ...options } = request;
  return engine.several(namesOf(group), { ...options, type }, tentative ?? false, 'lock()');
}

function namesOf(group: readonly LockHandle[]): readonly string[] {
  return group.map(({ name }) => name);
}

/**
 * Runs an acquisition inside the traces of all its services. Each service publishes how its own locks were acquired.
 */
function tracedByAll(
  groups: readonly (LocksOfOneService | OtherKind)[],
  acquire: () => Promise<readonly MemberLease[]>,
): Promise<readonly MemberLease[]> {
  let traced = acquire;
  for (const [i, group] of groups.entries()) {
    if (group instanceof OtherKind) continue;
    const inner = traced;
    traced = async () => {
      let leases: readonly MemberLease[] = [];
      await group.traced(async () => {
        leases = await inner();
        return leases[i] as LockLease;
      });
      return leases;
    };
  }
  return traced();
}

/** A member that cannot be acquired together with others: a red lock. */
class OtherKind implements WantedGroup<MemberLease>, Wanted {
  readonly all: readonly Wanted[] = [this];
  private lease: MemberLease | undefined;
  /** Ends the acquisition that is under way. */
  private stop = new AbortController();

  constructor(
    private readonly handle: LockHandle,
    private readonly request: LeaseRequest,
  ) {}

  get name(): string {
    return this.handle.name;
  }

  get sortKey(): string {
    return this.handle.sortKey;
  }

  get taken(): boolean {
    return this.lease !== undefined;
  }

  get stale(): boolean {
    return !this.lease?.held;
  }

  get aged(): boolean {
    const { lease, request } = this;
    return lease !== undefined && request.leaseTime !== undefined && lockLeasesOf(lease).some(isAged);
  }

  async takeMissing(): Promise<BusyLock | undefined> {
    if (this.taken) return undefined;
    try {
      await this.acquire(0);
      return undefined;
    } catch (error) {
      if (error instanceof LockBusyError) return { wanted: this, remaining: error.remainingTime, holder: error.holder };
      throw error instanceof LockUnavailableError ? ((error.cause as BackendError | undefined) ?? error) : error;
    }
  }

  wait(waitTime: Milliseconds, _caller: Caller<never>, _departed: () => Error): Promise<void> {
    return this.acquire(waitTime);
  }

  stopWaiting(): void {
    this.stop.abort();
  }

  async restartLease(): Promise<void> {
    const { lease, request } = this;
    const aged = lease === undefined ? [] : lockLeasesOf(lease).filter(isAged);
    // If too few members of a red lock are held after this, the lock is stale.
    await Promise.allSettled(aged.map((one) => one.extend(request.leaseTime as Duration)));
  }

  async giveBack(): Promise<void> {
    const { lease } = this;
    this.lease = undefined;
    await lease?.release().catch(() => {}); // a lost lease is not an error here
  }

  describe(holder: string | undefined): { readonly who: string } {
    return { who: holder ?? 'another owner' };
  }

  arrived(): undefined {
    return undefined;
  }

  left(): void {}

  outage(): undefined {
    return undefined;
  }

  explained(failure: BackendError): BackendError {
    return failure;
  }

  failedOnce(): void {}

  createLease(): MemberLease {
    return this.lease as MemberLease;
  }

  private async acquire(waitTime: number): Promise<void> {
    const { signal } = this.request;
    const ended = signal === undefined ? this.stop.signal : AbortSignal.any([signal, this.stop.signal]);
    this.lease = await this.handle.acquireLease({ ...this.request, waitTime, signal: ended });
  }
}
