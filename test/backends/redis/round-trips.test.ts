import type { AcquireAllReply, Acquired } from '../../../lib/backends/lock-backend.js';
import { RedisWorld } from './redis-world.js';

describe('commands of the Redis backend', () => {
  const world = new RedisWorld();
  const requests = (count: number) => Array.from({ length: count }, () => world.request());

  it('are one for an acquisition, one for a renewal and one for a release', async () => {
    const backend = world.backend();
    await backend.acquire(world.request());
    await backend.renew(world.request());
    await backend.release(world.request());
    const request = world.request();
    expect(await world.commands(() => backend.acquire(request))).toEqual({ evalsha: 1 });
    expect(await world.commands(() => backend.renew(request))).toEqual({ evalsha: 1 });
    expect(await world.commands(() => backend.release(request))).toEqual({ evalsha: 1 });
  });

  it('are a few for all requests of one tick', async () => {
    const backend = world.backend();
    const locks = requests(64);
    await backend.acquire(world.request());
    const all = (work: (lock: (typeof locks)[0]) => Promise<unknown>) => () => Promise.all(locks.map(work));
    for (const work of [
      all((lock) => backend.acquire(lock)),
      all((lock) => backend.renew(lock)),
      all((lock) => backend.release(lock)),
    ]) {
      expect((await world.commands(work)).evalsha).toBeLessThanOrEqual(3);
    }
    expect(await world.keys()).not.toContain(locks[0].key);
  });

  it('have at most 128 locks each', async () => {
    const backend = world.backend();
    const locks = requests(1_000);
    const { evalsha } = await world.commands(() => Promise.all(locks.map((lock) => backend.acquire(lock))));
    expect(evalsha).toBeGreaterThanOrEqual(8);
    expect(evalsha).toBeLessThanOrEqual(14);
    await Promise.all(locks.map((lock) => backend.release(lock)));
  });

  it('are a few for all callers of one tick that want several locks each, and each caller gets its own answer', async () => {
    const backend = world.backend();
    await backend.acquireAll(requests(2));
    const [foreign, held] = requests(2);
    await world.redis.set(foreign.key, 'a string');
    await backend.acquire({ ...held, owner: world.owner() });
    const free = Array.from({ length: 16 }, () => requests(3));
    const [unusable, busy] = [
      [...requests(1), foreign, ...requests(1)],
      [...requests(1), held],
    ];
    const overlapping = [...requests(1), { ...free[0][1], owner: world.owner() }];
    const callers = [...free.slice(0, 8), unusable, busy, ...free.slice(8), overlapping];
    let answers: PromiseSettledResult<AcquireAllReply>[] = [];
    const { evalsha } = await world.commands(async () => {
      answers = await Promise.allSettled(callers.map((locks) => backend.acquireAll(locks)));
    });
    expect(evalsha).toBeLessThanOrEqual(3);

    const answerOf = (locks: (typeof callers)[0]) => answers[callers.indexOf(locks)];
    const tokens = free.flatMap((locks) => {
      const answer = answerOf(locks);
      return answer.status === 'fulfilled' && answer.value.acquired ? answer.value.tokens : [];
    });
    expect(new Set(tokens).size).toBe(48);
    expect(answerOf(unusable)).toMatchObject({ status: 'rejected', reason: { kind: 'key', outcome: 'refused' } });
    expect(answerOf(busy)).toMatchObject({ value: { acquired: false, index: 1 } });
    expect(answerOf(overlapping)).toMatchObject({ value: { acquired: false, index: 1, holder: free[0][1].owner } });
    for (const locks of free) for (const { key, owner } of locks) expect(await world.redis.hkeys(key)).toEqual([owner]);
    for (const { key } of [unusable[0], unusable[2], busy[0], overlapping[0]])
      expect(await world.redis.exists(key)).toBe(0);
    const { token } = (await backend.acquire(world.request())) as Acquired;
    expect(token).toBeGreaterThan(Math.max(...tokens));
  });

  it('share a call only where lease times agree', async () => {
    const backend = world.backend();
    const [short, long] = [world.request(), world.request('reentrant', { leaseTime: 120_000 })];
    await backend.acquire(world.request());
    const work = () => Promise.all([backend.acquire(short), backend.acquire(long)]);
    expect(await world.commands(work)).toEqual({ evalsha: 2 });
    expect(await world.redis.pttl(short.key)).toBeLessThanOrEqual(60_000);
    expect(await world.redis.pttl(long.key)).toBeGreaterThan(60_000);
  });

  it('answer each lock separately, whether or not all answers of a batch are the same', async () => {
    const backend = world.backend();
    const locks = Array.from({ length: 4 }, () => world.request());
    const release = async () =>
      (await Promise.all(locks.map((lock) => backend.release(lock)))).map(({ released }) => released);
    const acquire = async () =>
      (await Promise.all(locks.map((lock) => backend.acquire(lock)))).map(({ acquired }) => acquired);
    expect(await acquire()).toEqual([true, true, true, true]);
    expect(await release()).toEqual([true, true, true, true]);
    expect(await release()).toEqual([false, false, false, false]);
    await backend.acquire(locks[1]);
    await backend.acquire({ ...locks[2], owner: `${locks[2].owner}0` });
    expect(await acquire()).toEqual([true, true, false, true]);
    expect(await release()).toEqual([true, true, false, true]);
  });

  it('continue after SCRIPT FLUSH under load', async () => {
    const backend = world.backend();
    const pairs = requests(400).map(async (lock, n) => {
      if (n % 100 === 0) await world.redis.script('FLUSH');
      expect(await backend.acquire(lock)).toMatchObject({ acquired: true });
      expect(await backend.release(lock)).toMatchObject({ released: true });
    });
    await Promise.all(pairs);
  });

  it('leave nothing behind but the clock of the tokens', async () => {
    const backend = world.backend();
    await world.redis.flushall();
    for (const type of ['reentrant', 'fair', 'read', 'write'] as const) {
      const lock = world.request(type);
      await backend.acquire(lock);
      await backend.acquire({ ...lock, owner: world.owner(), waiterTimeout: 0 });
      const waiter = { ...lock, owner: world.owner(), waiterTimeout: 5_000 };
      if (!(await backend.acquire(waiter)).acquired) await backend.removeWaiter(waiter);
      await backend.release(waiter);
      await backend.forceRelease(lock.key);
    }
    expect(await world.keys()).toEqual(['nestjs_redis_lock_clock']);
  });
});
