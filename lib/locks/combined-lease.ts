import { type Duration, MIN_LEASE_TIME, toMilliseconds } from '../engine/duration.js';
import { LockError, LockLostError, LockNotOwnedError } from '../engine/errors.js';
import type { Lease } from '../engine/lease/lease.js';
import { LockLease } from '../engine/lease/lock-lease.js';
import { LockScope, lockScopes } from '../engine/scope/lock-scope.js';

/** What a member of a multi-lock can give. */
export type MemberLease = LockLease | CombinedLease;

/** The lease of a multi-lock or a red lock: held while so many of its members' leases are. */
export class CombinedLease implements Lease {
  /** Those of the locks that it is made of in the end. */
  readonly leaves: readonly LockLease[];
  private readonly abort = new AbortController();
  private ending: Promise<void> | undefined;

  /** @param needed how many members have to be held */
  constructor(
    private readonly members: readonly MemberLease[],
    private readonly needed: number,
  ) {
    this.leaves = members.flatMap((member) => (member instanceof LockLease ? [member] : member.leaves));
    for (const { signal } of members) signal.addEventListener('abort', () => this.memberEnded(signal.reason));
  }

  get name(): string {
    return this.names.join(', ');
  }

  get names(): readonly string[] {
    return this.leaves.flatMap(({ names }) => names).sort();
  }

  get owner(): string {
    return [...new Set(this.leaves.map(({ owner }) => owner))].join(', ');
  }

  get fencingToken(): number {
    const [token, ...others] = new Set(this.tokens.values());
    if (others.length === 0) return token;
    throw new LockError(`The locks ${this.name} have a fencing token each: read lease.tokens.get(name)`, this.name);
  }

  get tokens(): ReadonlyMap<string, number> {
    const { names } = this;
    const tokens = new Map<string, number>();
    for (const { service, tokens: own } of this.leaves) {
      for (const [name, token] of own) {
        const isAlone = names.indexOf(name) === names.lastIndexOf(name);
        tokens.set(
          isAlone
            ? name
            : freeKey(
                tokens,
                name,
                (service as { readonly backend: { readonly description: string } }).backend.description,
              ),
          token,
        );
      }
    }
    return tokens;
  }

  get signal(): AbortSignal {
    return this.abort.signal;
  }

  /** Neither released nor lost, as far as was noticed. */
  get live(): boolean {
    return this.ending === undefined && this.enough(({ live }) => live);
  }

  get held(): boolean {
    return this.ending === undefined && this.enough(({ held }) => held);
  }

  remainingTime(): number {
    if (!this.live) return 0;
    const times = this.members.map((member) => member.remainingTime()).sort((one, other) => other - one);
    return times[this.needed - 1];
  }

  assertHeld(): void {
    if (this.held) return;
    this.assertNotReleased();
    throw this.lossOf(this.members.flatMap(errorOf));
  }

  async extend(duration: Duration): Promise<void> {
    toMilliseconds(duration, `extend() of '${this.name}': duration`, MIN_LEASE_TIME);
    this.assertNotReleased();
    await this.ofEnough((member) => member.extend(duration));
  }

  async run<T>(body: (lease: Lease) => T | Promise<T>): Promise<T> {
    await this.confirm();
    const scopes: LockScope[] = [];
    for (const lease of this.leaves)
      if (lease.live) scopes.push(new LockScope(lease, scopes.at(-1) ?? lockScopes.getStore(), this));
    try {
      return await lockScopes.run(scopes.at(-1), body, this);
    } finally {
      for (const scope of scopes) scope.end();
    }
  }

  /** As {@link LockLease.confirm}, of so many members as are needed. */
  async confirm(): Promise<void> {
    this.assertNotReleased();
    await this.ofEnough(async (member) => member.confirm());
    this.assertNotReleased();
  }

  release(): Promise<void> {
    if (this.ending !== undefined) return this.ending.catch(() => {});
    this.ending = Promise.resolve();
    this.ending = this.ofEnough((member) => member.release());
    return this.ending;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /**
   * Lets a fixed lease begin now, also where a member was acquired a while ago. A member that is a re-entry too keeps the lease that it
   * has.
   *
   * @throws LockLostError when too few are held, or what their extension threw; then nothing is held
   */
  async refresh(leaseTime: Duration | undefined): Promise<void> {
    const aged = leaseTime === undefined ? [] : this.leaves.filter(isAged);
    const results = await Promise.allSettled(aged.map((lease) => lease.extend(leaseTime as Duration)));
    if (this.live) return;
    await giveBack(this.members);
    throw failuresOf(results)[0] ?? this.lossOf([]);
  }

  private enough(is: (member: MemberLease) => boolean): boolean {
    return this.members.filter(is).length >= this.needed;
  }

  /** @throws what the first of the members threw, where it went well with too few of them */
  private async ofEnough(act: (member: MemberLease) => Promise<void>): Promise<void> {
    const failures = failuresOf(await Promise.allSettled(this.members.map(act)));
    if (this.members.length - failures.length < this.needed) throw failures[0];
  }

  private memberEnded(reason: unknown): void {
    if (!this.enough(({ signal }) => !signal.aborted)) this.abort.abort(reason);
  }

  private assertNotReleased(): void {
    if (this.ending !== undefined)
      throw new LockNotOwnedError(`The lease of '${this.name}' was released already`, this.name);
  }

  private lossOf([cause]: readonly unknown[]): LockLostError {
    const { length } = this.members;
    const message = `Too few of the locks ${this.name} are held: ${this.needed} of ${length} are needed`;
    return new LockLostError(message, this.name, { cause });
  }
}

/** Releases what is not used after all; that it was lost does not matter then. */
export async function giveBack(leases: Iterable<MemberLease>): Promise<void> {
  await Promise.allSettled(Array.from(leases, (lease) => lease.release()));
}

/** A tenth of it is over. */
function isAged(lease: LockLease): boolean {
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

/** Two stores can have one description: those in memory. */
function freeKey(tokens: ReadonlyMap<string, number>, name: string, description: string): string {
  let key = `${name} (${description})`;
  for (let n = 2; tokens.has(key); n++) key = `${name} (${description}, ${n})`;
  return key;
}
