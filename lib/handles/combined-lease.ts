import { printsAs } from '../backends/prints-as.js';
import { LockConfigurationError, LockError, LockLostError, LockNotOwnedError } from '../engine/errors.js';
import { leaseController } from '../engine/lease/lease-controller.js';
import { LockLease } from '../engine/lease/lock-lease.js';
import { printedLease } from '../engine/lease/printed-lease.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { checkResult } from '../engine/scope/body-result.js';
import { LockScope, lockScopes, scopeAround } from '../engine/scope/lock-scope.js';
import { type Duration, MIN_LEASE_TIME, toMilliseconds } from '../engine/terms/duration.js';
import type { Lease } from '../engine/terms/lease.js';

/** The lease of one member. */
export type MemberLease = LockLease | CombinedLease;

/** The lease of a multi-lock or a red lock. It is held while enough of its members' leases are held. */
export class CombinedLease implements Lease {
  /** The leases of all its locks, including those in nested combined leases. */
  readonly lockLeases: readonly LockLease[];
  private readonly controller = leaseController();
  private ending: Promise<void> | undefined;

  /**
   * @param needed how many members have to be held
   * @param engines the engines of all members
   */
  constructor(
    private readonly members: readonly MemberLease[],
    private readonly needed: number,
    private readonly engines: readonly LockEngine[],
  ) {
    this.lockLeases = members.flatMap(lockLeasesOf);
    for (const { signal } of members) signal.addEventListener('abort', () => this.memberEnded(signal.reason));
  }

  get name(): string {
    return this.names.join(', ');
  }

  get names(): readonly string[] {
    return this.lockLeases.flatMap(({ names }) => names).sort();
  }

  get owner(): string {
    return this.lockLeases[0].owner;
  }

  get owners(): ReadonlyMap<string, string> {
    return this.byName(({ owners }) => owners);
  }

  readonly superseded = 0;

  get fencingToken(): number {
    const [token, ...others] = new Set(this.tokens.values());
    if (others.length === 0) return token;
    throw new LockError(`The locks ${this.name} have different fencing tokens: read lease.tokens.get(name)`, this.name);
  }

  get tokens(): ReadonlyMap<string, number> {
    return this.byName(({ tokens }) => tokens);
  }

  get signal(): AbortSignal {
    for (const { signal } of this.members) if (signal.aborted) this.memberEnded(signal.reason);
    return this.controller.signal;
  }

  /** Neither released nor known to be lost. */
  get live(): boolean {
    return this.ending === undefined && this.areEnough(({ live }) => live);
  }

  get held(): boolean {
    return this.ending === undefined && this.areEnough(({ held }) => held);
  }

  remainingTime(): number {
    if (!this.live) return 0;
    const times = this.members.map((member) => member.remainingTime()).sort((one, other) => other - one);
    return times[this.needed - 1];
  }

  assertHeld(): void {
    if (this.held) return;
    this.assertNotReleased();
    throw this.lossError(this.members.flatMap(errorOf)[0]);
  }

  async extend(duration: Duration): Promise<void> {
    toMilliseconds(duration, `extend() of '${this.name}': duration`, MIN_LEASE_TIME);
    this.assertNotReleased();
    await this.forEnough((member) => member.extend(duration));
  }

  async run<T>(body: (lease: Lease) => T | Promise<T>): Promise<T> {
    await this.confirm();
    const live = this.lockLeases.filter((lease) => lease.live);
    const outermost = live.find(({ isStranger }) => isStranger) ?? live[0];
    const scopes: LockScope[] = [];
    for (const lease of live) scopes.push(new LockScope(lease, scopes.at(-1) ?? scopeAround(outermost), this));
    try {
      const result = await lockScopes.run(scopes.at(-1), body, this);
      checkResult(result, { what: `lease.run() of '${this.name}'`, body }, this.engines[0].services.events);
      return result;
    } finally {
      for (const scope of scopes) scope.end();
    }
  }

  /** Like {@link LockLease.confirm}, for as many members as are needed. */
  async confirm(): Promise<void> {
    this.assertNotReleased();
    await this.forEnough(async (member) => member.confirm());
    this.assertNotReleased();
  }

  release(): Promise<void> {
    if (this.ending !== undefined) return this.ending.catch(() => {});
    this.ending = Promise.resolve();
    this.ending = this.forEnough((member) => member.release());
    return this.ending;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async detach(): Promise<never> {
    throw new LockConfigurationError(
      `detach() of '${this.name}': the lease of a multi-lock or red lock cannot be detached. Detach leases of single locks`,
    );
  }

  /**
   * Restarts a fixed lease now, including those of members that were acquired a while ago. A member that is a re-entry
   * keeps the lease that it shares.
   *
   * @throws LockLostError when too few members are held, or the error of their extension; all members are released then
   */
  async refresh(leaseTime: Duration | undefined): Promise<void> {
    const aged = leaseTime === undefined ? [] : this.lockLeases.filter(isAged);
    const results = await Promise.allSettled(aged.map((lease) => lease.extend(leaseTime as Duration)));
    if (this.live) return;
    await releaseUnused(this.members);
    throw failuresOf(results)[0] ?? this.lossError();
  }

  /**
   * Collects values of the leases by lock name. A name that occurs more than once is followed by the description of its
   * backend.
   */
  private byName<T>(valuesOf: (lease: LockLease) => ReadonlyMap<string, T>): ReadonlyMap<string, T> {
    const { names } = this;
    const all = new Map<string, T>();
    for (const lease of this.lockLeases) {
      for (const [name, value] of valuesOf(lease)) {
        const isUnique = names.indexOf(name) === names.lastIndexOf(name);
        all.set(isUnique ? name : unusedKey(all, name, this.placeOf(lease)), value);
      }
    }
    return all;
  }

  /** The description of the backend in which the locks of a lease are kept. */
  private placeOf(lease: LockLease): string {
    return this.engines.find((engine) => engine.owns(lease))!.settings.backend.description;
  }

  private areEnough(predicate: (member: MemberLease) => boolean): boolean {
    return this.members.filter(predicate).length >= this.needed;
  }

  /** @throws the error of the first failing member, unless enough members succeeded */
  private async forEnough(act: (member: MemberLease) => Promise<void>): Promise<void> {
    const failures = failuresOf(await Promise.allSettled(this.members.map(act)));
    if (this.members.length - failures.length < this.needed) throw failures[0];
  }

  private memberEnded(reason: unknown): void {
    if (!this.areEnough(({ signal }) => !signal.aborted)) this.controller.abort(reason);
  }

  private assertNotReleased(): void {
    if (this.ending !== undefined)
      throw new LockNotOwnedError(`The lease of '${this.name}' was released already`, this.name);
  }

  private lossError(cause?: unknown): LockLostError {
    const { length } = this.members;
    const message = `Too few of the locks ${this.name} are held: ${this.needed} of ${length} are needed`;
    return new LockLostError(message, this.name, { cause });
  }
}

/** The single-service leases that make up a lease. */
export function lockLeasesOf(lease: MemberLease): readonly LockLease[] {
  return lease instanceof LockLease ? [lease] : lease.lockLeases;
}

/** Releases leases that are not needed after all. A lost lease is not an error here. */
export async function releaseUnused(leases: Iterable<MemberLease>): Promise<void> {
  await Promise.allSettled(Array.from(leases, (lease) => lease.release()));
}

/** Whether a tenth of the lease has passed, and no scope around the caller shares it. */
export function isAged(lease: LockLease): boolean {
  return (
    lease.locks.every(({ shares }) => shares.length === 1) && lease.remainingTime() < lease.locks[0].leaseTime * 0.9
  );
}

function failuresOf(results: readonly PromiseSettledResult<void>[]): readonly unknown[] {
  return results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
}

function errorOf(lease: MemberLease): readonly unknown[] {
  try {
    lease.assertHeld();
    return [];
  } catch (error) {
    return [error];
  }
}

/** Two memory stores have the same description, so the second one gets a number. */
function unusedKey(used: ReadonlyMap<string, unknown>, name: string, place: string): string {
  let key = `${name} (${place})`;
  for (let n = 2; used.has(key); n++) key = `${name} (${place}, ${n})`;
  return key;
}

printsAs(CombinedLease, printedLease);
