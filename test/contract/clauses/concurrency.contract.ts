import type { HeldType } from '../../../lib/backends/lock-backend.js';
import type { ContractWorld } from '../support/contract-world.js';
import { LONG } from '../support/owner.js';

/** Calls that start together may be sent together; each gets its own answer. */
export function describeConcurrency(world: ContractWorld): void {
  const types: readonly HeldType[] = world.types;
  /** More requests than any batch holds, of every type, in mixed order. */
  const manyOwners = () =>
    Array.from({ length: Math.min(300, world.capabilities.most ?? 300) }, (_, n) =>
      world.owner(types[n % types.length]),
    );
  const leaseOf = (n: number) => 10_000 * (1 + (n % 4));

  it('gives each of many that are acquired at once its own lease', async () => {
    const owners = manyOwners();
    await Promise.all(owners.map((owner, n) => owner.take({ leaseTime: leaseOf(n) })));
    const remaining = await Promise.all(owners.map((owner) => owner.remaining()));
    for (const [n, left] of remaining.entries()) expect(left).toBeWithin(leaseOf(n) - 9_999, leaseOf(n));
  });

  it('answers each of many that are acquired at once, busy or not', async () => {
    const owners = manyOwners();
    const holders = owners.map(({ key }) => world.owner('reentrant', key, world.clients[1]));
    await Promise.all(holders.filter((_, n) => n % 3 === 0).map((holder) => holder.take()));
    const replies = await Promise.all(owners.map((owner) => owner.acquire()));
    for (const [n, reply] of replies.entries()) {
      expect(reply).toMatchObject(n % 3 === 0 ? { acquired: false, holder: holders[n].owner } : { acquired: true });
    }
  });

  it('answers each of many that are renewed, released and inspected at once', async () => {
    const owners = manyOwners();
    const strangers = owners.map(({ type, key }) => world.owner(type, key));
    await Promise.all(owners.map((owner) => owner.take()));
    const someone = (n: number) => (n % 3 === 0 ? strangers[n] : owners[n]);
    const renewed = await Promise.all(owners.map((_, n) => someone(n).renew(leaseOf(n))));
    expect(renewed).toEqual(owners.map((_, n) => n % 3 !== 0));
    const left = await Promise.all(owners.map((owner) => owner.remaining()));
    for (const [n, time] of left.entries()) {
      expect(time).toBeWithin(n % 3 === 0 ? 40_001 : leaseOf(n) - 9_999, n % 3 === 0 ? LONG : leaseOf(n));
    }
    const released = await Promise.all(owners.map((_, n) => someone(n).release()));
    expect(released.map((reply) => reply.released)).toEqual(owners.map((_, n) => n % 3 !== 0));
    const modes = await Promise.all(owners.map(async (owner) => (await owner.inspect()).mode));
    expect(modes.map((mode) => mode === 'free')).toEqual(owners.map((_, n) => n % 3 !== 0));
  });

  if (world.capabilities.publishes !== false) {
    it('wakes the waiters of each of many that are released at once', async () => {
      const owners = types.flatMap((type) => Array.from({ length: 10 }, () => world.owner(type)));
      const waiters = owners.map(({ type, key }) =>
        world.owner(type === 'read' ? 'write' : type, key, world.clients[1]),
      );
      const listeners = await Promise.all(waiters.map((waiter) => world.listen(waiter)));
      await Promise.all(owners.map((owner) => owner.take()));
      await Promise.all(waiters.map((waiter) => waiter.meet({ waiterTimeout: waiter.type === 'fair' ? LONG : 0 })));
      await Promise.all(owners.map((owner) => owner.release()));
      await Promise.all(listeners.map((listener) => listener.hears()));
    });
  }

  it('gives each of many requests for one name its own token, and a later one a higher token', async () => {
    if (!world.has('read')) return;
    const readers = world.owners('read', 200);
    const tokens = await Promise.all(readers.map(async (reader) => (await reader.take()).token));
    if (world.capabilities.tokensDiffer !== false) expect(new Set(tokens).size).toBe(readers.length);
    const [late] = world.owners('read', 1, readers[0].key);
    expect((await late.take()).token).toBeGreaterThan(Math.max(...tokens));
  });
}
