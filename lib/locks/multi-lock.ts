import { LockConfigurationError } from '../engine/errors.js';
import type { WaitTerms } from '../engine/waiting/waiter.js';
import { AllOrNone, type LockGroup } from './all-or-none.js';
import type { MemberLease } from './combined-lease.js';
import { type CombinedAcquisition, CombinedLock } from './combined-lock.js';
import { acquireThrough, type LeaseRequest, type LockHandle } from './lock-handle.js';

/**
 * Redisson's RMultiLock: all of several locks, or none, of any kinds and of any services.
 *
 * Normally it holds none of them while it waits for another one. A caller that was passed over for long may hold what it has for a
 * second, so that no order of locks can deadlock and nobody starves. Locks of one service and type are acquired by one command where
 * the backend can. There is one lease: it is held while all members are, it has a fencing token for each of them, and its `run()` is a
 * scope in each service.
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
  private readonly groups: readonly LockGroup[];

  /** @internal */
  constructor(locks: readonly LockHandle[]) {
    super(
      'getMultiLock()',
      locks.flatMap((lock) => lock?.components ?? [lock]),
    );
    this.needed = this.members.length;
    refuseContradictions(this.members);
    this.groups = groupByCommand(this.members);
  }

  /** @internal */
  override get components(): readonly LockHandle[] {
    return this.members;
  }

  /** @internal */
  override acquireLease(request: LeaseRequest): Promise<MemberLease> {
    return this.groups.length === 1 ? this.groups[0].acquireLease(request) : super.acquireLease(request);
  }

  /** @internal */
  protected acquisition({ outageTimeout }: WaitTerms, request: LeaseRequest): CombinedAcquisition {
    const { leaseTime, tentative } = request;
    return new AllOrNone(this.groups, { leaseTime, outageTimeout, tentative }, this.engines[0].settings.runtime);
  }

  /** @internal */
  protected leasesNeeded(leases: readonly MemberLease[]): number {
    return leases.length;
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

/** Puts those together that one command can acquire. */
function groupByCommand(members: readonly LockHandle[]): readonly LockGroup[] {
  const groups = new Map<string | LockHandle, LockHandle[]>();
  for (const member of members) {
    const { commandGroup } = member;
    const id = commandGroup ? `${commandGroup.engine.settings.clientId} ${commandGroup.type}` : member;
    groups.set(id, [...(groups.get(id) ?? []), member]);
  }
  return [...groups.values()].map(toGroup);
}

function toGroup(members: readonly LockHandle[]): LockGroup {
  const [first] = members;
  if (first.commandGroup === undefined || members.length === 1) return first;
  const { engine, type } = first.commandGroup;
  const names = members.map(({ name }) => name);
  return { acquireLease: (request) => acquireThrough(engine, names, type, request) };
}
