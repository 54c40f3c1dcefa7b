import { LockConfigurationError } from '../engine/errors.js';
import type { LockLease } from '../engine/lease/lock-lease.js';
import { acquireAllOrNone } from '../engine/several/all-or-none.js';
import type { LocksOfOneService } from '../engine/several/locks-of-one-service.js';
import type { WaitTerms } from '../engine/terms/wait-terms.js';
import { CombinedLease, type MemberLease } from './combined-lease.js';
import { CombinedLock } from './combined-lock.js';
import { acquireThrough, type LeaseRequest, type LockHandle } from './lock-handle.js';
import { Majority } from './majority.js';
import type { RedLock } from './red-lock.js';

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
    await this.started();
    const terms = this.waitTermsOf(request);
    const { leaseTime, tentative } = request;
    const fixed = this.fixedLeaseOf(request);
    const memberRequest = { leaseTime, tentative, outageTimeout: terms.outageTimeout, signal: terms.signal };
    const wanted = groups.map((group) => toWantedGroup(group, memberRequest, terms));
    const { runtime } = engines[0].settings;
    const acquire = () => acquireAllOrNone(wanted, name, terms, fixed, runtime);
    const leases = await tracedByAll(wanted, acquire);
    return new CombinedLease(leases, leases.length, engines);
  }
}

/** @throws LockConfigurationError when two members are the same lock in ways that exclude each other */
function refuseContradictions(members: readonly LockHandle[]): void {
  const known = new Set<string>();
  for (const { engines, name } of members.flatMap(indispensable)) {
    const id = `${engines[0].settings.clientId} ${name}`;
    if (known.has(id)) {
      throw new LockConfigurationError(
        `getMultiLock(): the lock '${name}' is given in two ways that exclude each other: it would wait for itself`,
      );
    }
    known.add(id);
  }
}

/** The single locks without which a lock cannot be held. A red lock of three or more can do without each of them. */
function indispensable(lock: LockHandle): readonly LockHandle[] {
  if (!(lock instanceof CombinedLock)) return [lock];
  return lock.needed === lock.members.length ? lock.members.flatMap(indispensable) : [];
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

function toWantedGroup(
  group: readonly LockHandle[],
  request: LeaseRequest,
  terms: WaitTerms,
): LocksOfOneService | Majority {
  const [{ commandGroup }] = group;
  if (commandGroup === undefined) return new Majority(group[0] as RedLock, request, terms);
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
  groups: readonly (LocksOfOneService | Majority)[],
  acquire: () => Promise<readonly MemberLease[]>,
): Promise<readonly MemberLease[]> {
  let traced = acquire;
  for (const [i, group] of groups.entries()) {
    if (group instanceof Majority) continue;
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
