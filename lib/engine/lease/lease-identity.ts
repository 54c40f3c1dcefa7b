import { LockError } from '../errors.js';
import type { HeldLock } from './held-lock.js';

/** Which locks a lease holds, as which owner, and with which fencing tokens. */
export abstract class LeaseIdentity {
  /** As of the acquisition; the locks' own tokens go on growing when they are handed off. */
  private readonly token: number;
  private readonly tokenList: readonly number[] | undefined;

  protected constructor(readonly locks: readonly HeldLock[]) {
    this.token = locks[0].token;
    this.tokenList = locks.length > 1 ? locks.map(({ token }) => token) : undefined;
  }

  get name(): string {
    return this.locks.length === 1 ? this.locks[0].name : this.names.join(', ');
  }

  get owner(): string {
    return this.locks[0].owner;
  }

  get names(): readonly string[] {
    return this.locks.map((lock) => lock.name);
  }

  get fencingToken(): number {
    const { token } = this;
    if (this.tokenList?.some((other) => other !== token)) {
      throw new LockError(
        `The locks ${this.name} have different fencing tokens: read lease.tokens.get(name)`,
        this.name,
      );
    }
    return token;
  }

  get tokens(): ReadonlyMap<string, number> {
    return new Map(this.locks.map((lock, i) => [lock.name, this.tokenList?.[i] ?? this.token]));
  }
}
