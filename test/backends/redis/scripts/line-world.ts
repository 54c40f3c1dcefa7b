import { CLOCK, expectBetween, GRANT, HEAD_START, LAPSES, LATER, PERMIT, ScriptWorld } from './script-world.js';

export const MINUTE = 60_000;
/** An owner of a client whose releases serve lines, as its id says. Those of all others here do not. */
export const OURS = '11111111-2222-811e-4444-555555555555:1';

/** The clock of a slot: a node of a cluster does not count all who listen. */
export const NODE_CLOCK = 'nestjs_redis_lock_clock:{a}';
export const READ_LEASE = (owner: string) => `{a}:${owner}:rwlock_timeout:1`;

/** Added to the time at which a place lapses that wants a lock which n may hold. */
export const permits = (n: number) => n * PERMIT;

interface Entry {
  readonly deadline?: string | number;
  readonly highest?: number;
  readonly reserve?: number;
}

interface PlainEntry extends Entry {
  readonly nonce?: string;
  readonly counter?: string;
  readonly grantLease?: number;
  /** How many calls were superseded, and the order that the call was given. */
  readonly newest?: readonly [] | readonly [number, number | ''];
}

interface ReadWriteEntry extends Entry {
  readonly past?: boolean;
}

/** Uses the line of the lock `a`. */
export class LineWorld extends ScriptWorld {
  /** When the places lapse. */
  lapses(): Promise<Record<string, number>> {
    return this.scores(LAPSES);
  }

  /** Expects that the free lock is left to who was told of it after `before`, and nobody's place lapses earlier. */
  async expectTold(before: number): Promise<void> {
    const { told, ...places } = await this.lapses();
    expectBetween(told, before + HEAD_START, (await this.now()) + HEAD_START);
    for (const lapse of Object.values(places)) expect(lapse).toBeGreaterThan(before + 5_000);
  }

  /** Leaves the lock to clients outside the line until that many ms from now. */
  async headStart(time: number): Promise<void> {
    await this.redis.zadd(LAPSES, (await this.now()) + time, 'outside');
  }

  async hold(owner: string, lease = MINUTE): Promise<void> {
    await this.redis.hset('a', owner, '1');
    await this.redis.pexpire('a', lease);
  }

  async holdAs(fields: Record<string, string>): Promise<void> {
    await this.redis.hset('a', fields);
    await this.redis.pexpire('a', MINUTE);
    for (const owner of Object.keys(fields)) {
      if (owner !== 'mode' && !owner.endsWith(':write')) await this.redis.set(READ_LEASE(owner), '1', 'PX', MINUTE);
    }
  }

  /** Holds the lock as one that n may hold. */
  async holdPermits(leases: Record<string, number>): Promise<void> {
    const now = await this.now();
    for (const [owner, lease] of Object.entries(leases)) await this.redis.zadd('a', now + lease, owner);
    await this.redis.pexpire('a', MINUTE);
  }

  enter(
    owner: string,
    { nonce = '', counter, grantLease = GRANT, newest = [], ...entry }: PlainEntry = {},
  ): Promise<unknown[]> {
    const { deadline = LATER, highest = 0, reserve = 0 } = entry;
    const args = [deadline, highest, MINUTE, reserve, owner, MINUTE, 'PUBLISH', nonce, grantLease, ...newest];
    const keys = counter === undefined ? [CLOCK, 'a'] : [CLOCK, 'a', counter];
    return this.run('enter-line', keys, args) as Promise<unknown[]>;
  }

  read(owner: string, entry: ReadWriteEntry = {}): Promise<unknown[]> {
    return this.run(...readWriteEntry(owner, 1, entry)) as Promise<unknown[]>;
  }

  write(owner: string, entry: ReadWriteEntry = {}): Promise<unknown[]> {
    return this.run(...readWriteEntry(owner, 0, entry)) as Promise<unknown[]>;
  }

  /** Each owner perhaps with a nonce: `owner nonce`. */
  refresh(...owners: string[]): Promise<unknown> {
    const places = owners.flatMap((owner) => [...owner.split(' '), ''].slice(0, 2));
    return this.run('refresh-places-1', ['a'], ['PUBLISH', CLOCK, MINUTE, ...places]);
  }

  remove(owner: string): Promise<unknown> {
    return this.run('remove-place-1', ['a'], ['PUBLISH', CLOCK, owner]);
  }

  release(owner: string, { publish = 'PUBLISH', clock = CLOCK } = {}): Promise<unknown> {
    return this.run('release-reentrant', ['a'], [publish, clock, owner]);
  }
}

export function readWriteEntry(owner: string, reads: 0 | 1, { past = false, ...entry }: ReadWriteEntry) {
  const { deadline = LATER, highest = 0, reserve = 0 } = entry;
  const args = [deadline, highest, MINUTE, reserve, owner, MINUTE, 'PUBLISH', reads, past ? 1 : 0];
  return ['enter-read-write-line-3', [CLOCK, 'a', READ_LEASE(owner)], args] as const;
}
