import type { HeldType } from '../../../lib/backends/lock-backend.js';
import { type ContractWorld, SHORT } from '../support/contract-world.js';
import type { Owner } from '../support/owner.js';

/** Several locks in one step, of the types that have no queue. */
export function describeAcquireAll(world: ContractWorld): void {
  const types = world.types.filter((type) => type !== 'fair' && type !== 'permits');
  const acquireAll = (owners: readonly Owner[], leaseTime = 60_000) =>
    owners[0].client.backend.acquireAll(owners.map((owner) => owner.request({ leaseTime })));

  /** Keys that any backend can take together: of one hash slot. */
  const keys = (count: number) => Array.from({ length: count }, () => world.key('{stock}'));
  const owners = (type: HeldType, keys: readonly string[], client = world.clients[0]) =>
    keys.map((key) => world.owner(type, key, client));

  describe.each(types)('several %s locks together', (type) => {
    it('are all acquired', async () => {
      const locks = owners(type, keys(5));
      expect(locks[0].client.backend.canAcquireTogether(locks.map(({ key }) => key))).toBe(true);
      expect(await acquireAll(locks, 5_000)).toMatchObject({ acquired: true });
      for (const lock of locks) expect(await lock.remaining()).toBeWithin(1, 5_000);
      for (const lock of locks) expect(await lock.release()).toMatchObject({ released: true });
    });

    it('have a growing token each, in the order of the names', async () => {
      const names = keys(3);
      const before = await Promise.all(owners(type, names).map(takeAndRelease));
      const reply = await acquireAll(owners(type, names));
      if (!reply.acquired) throw new Error('busy');
      expect(reply.tokens).toHaveLength(3);
      for (const [n, token] of reply.tokens.entries()) expect(token).toBeGreaterThan(before[n]);
      for (const key of names) await world.owner(type, key).forceRelease();
      const after = await Promise.all(owners(type, names).map(takeAndRelease));
      for (const [n, token] of reply.tokens.entries()) expect(token).toBeLessThan(after[n]);
    });

    it('have a token each that nobody gets after them, if several callers ask again in one tick', async () => {
      const callers = [2, 2, 2].map((count) => owners(type, keys(count)));
      const [first] = await Promise.all(callers.map((locks) => acquireAll(locks)));
      // From now on, the next token is one more than the last one, and not the time.
      if (first.acquired && world.capabilities.joinsQuorums !== false)
        await callers[0][0].raiseToken(first.tokens[0] + 20_000);
      const replies = await Promise.all(callers.map((locks) => acquireAll(locks)));
      const tokens = replies.flatMap((reply) => (reply.acquired ? reply.tokens : []));
      expect(tokens).toHaveLength(6);
      // A client that has seen none of them.
      const last = callers[2][1];
      await last.forceRelease();
      expect(await takeAndRelease(world.owner(type, last.key, world.clients[1]))).toBeGreaterThan(tokens[5]);
    });

    it('are not acquired at all when one of them is busy', async () => {
      const names = keys(4);
      const holder = world.owner('reentrant', names[2], world.clients[1]);
      await holder.take({ leaseTime: 5_000 });
      const locks = owners(type, names);
      const reply = await acquireAll(locks);
      expect(reply).toMatchObject({ acquired: false, index: 2, holder: holder.owner });
      expect(!reply.acquired && reply.remaining).toBeWithin(1, 5_000);
      for (const lock of locks) expect(await lock.holds()).toBe(false);
      await holder.release();
      expect(await acquireAll(locks)).toMatchObject({ acquired: true });
    });

    it('report the first of several that are busy', async () => {
      const names = keys(4);
      for (const n of [3, 1]) await world.owner('reentrant', names[n]).take();
      expect(await acquireAll(owners(type, names))).toMatchObject({ acquired: false, index: 1 });
    });

    it('are renewed when their owner acquires them again', async () => {
      const locks = owners(type, keys(3));
      await acquireAll(locks, SHORT);
      expect(await acquireAll(locks, 60_000)).toMatchObject({ acquired: true });
      for (const lock of locks) expect(await lock.remaining()).toBeGreaterThan(world.rounded(SHORT));
    });

    it('keep what their owner had when another one of them is busy', async () => {
      const locks = owners(type, keys(2));
      await locks[0].take({ leaseTime: 5_000 });
      await world.owner('reentrant', locks[1].key).take();
      expect(await acquireAll(locks)).toMatchObject({ acquired: false, index: 1 });
      expect(await locks[0].remaining()).toBeWithin(1, 5_000);
    });

    if (type === 'read') return;

    it('go to one of many that ask for overlapping names at once', async () => {
      const names = keys(4);
      const contenders = Array.from({ length: 12 }, (_, n) =>
        owners(type, [names[n % 4], names[(n + 1) % 4], names[(n + 2) % 4]], world.clients[n % 3]),
      );
      const replies = await Promise.all(contenders.map((locks) => acquireAll(locks)));
      expect(replies.filter(({ acquired }) => acquired)).toHaveLength(1);
    });
  });

  it('announces no writer when it finds a lock busy', async () => {
    if (!world.has('read', 'write')) return;
    const [free, busy] = keys(2);
    await world.owner('read', busy).take();
    const writers = owners('write', [free, busy]);
    const requests = writers.map((writer) => writer.request({ waiterTimeout: 60_000 }));
    const reply = await writers[0].client.backend.acquireAll(requests);
    expect(reply).toMatchObject({ acquired: false, index: 1 });
    for (const key of [free, busy]) await world.owner('read', key).take({ pastLine: false });
  });

  it('acquires locks of different types together', async () => {
    const names = keys(types.length);
    const locks = types.map((type, n) => world.owner(type, names[n]));
    expect(await acquireAll(locks)).toMatchObject({ acquired: true });
    for (const lock of locks) expect(await lock.holds()).toBe(true);
  });
}

async function takeAndRelease(owner: Owner): Promise<number> {
  const { token } = await owner.take();
  await owner.release();
  return token;
}
