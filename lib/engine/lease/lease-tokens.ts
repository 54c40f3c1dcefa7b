import { LockError } from '../errors.js';
import type { HeldLock } from './held-lock.js';

/** The fencing tokens of a lease as of its acquisition: the locks' own tokens go on growing when they are handed off. */
export class LeaseTokens {
  private readonly all: readonly number[];

  constructor(private readonly locks: readonly HeldLock[]) {
    this.all = locks.map(({ token }) => token);
  }

  /** @throws LockError where the locks have different tokens */
  get common(): number {
    const [token, ...others] = this.all;
    if (others.every((other) => other === token)) return token;
    const names = this.locks.map(({ name }) => name).join(', ');
    throw new LockError(`The locks ${names} have different fencing tokens: read lease.tokens.get(name)`, names);
  }

  get byName(): ReadonlyMap<string, number> {
    return new Map(this.locks.map(({ name }, i) => [name, this.all[i]]));
  }
}
