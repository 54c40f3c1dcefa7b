import { openWorld, STORES } from '../support/lock-world.js';
import { locked } from './locked.js';

describe.each(STORES)('the fenced lock, on %s', (store) => {
  const world = openWorld(store);

  it('the token grows with each acquisition, also across instances', async () => {
    const services = await world.services(3);
    const tokens: number[] = [];
    for (let round = 0; round < 9; round++) {
      await locked(services[round % 3].getFencedLock('order'), ({ fencingToken }) => tokens.push(fencingToken));
    }
    for (const [n, token] of tokens.entries()) if (n > 0) expect(token).toBeGreaterThan(tokens[n - 1]);
    expect(tokens.every(Number.isSafeInteger)).toBe(true);
  });

  it('the token grows from one of many contenders to the next', async () => {
    const services = await world.services(3);
    const tokens: number[] = [];
    const take = (n: number) =>
      locked(services[n % 3].getFencedLock('order'), ({ fencingToken }) => tokens.push(fencingToken));
    await Promise.all(Array.from({ length: 60 }, (_, n) => take(n)));
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(60);
  });

  it('re-entry keeps it', async () => {
    const locks = await world.service();
    const lock = locks.getFencedLock('order');
    const lease = await lock.lock();
    await lease.run(async () => {
      await locked(lock, (again) => expect(again.fencingToken).toBe(lease.fencingToken));
      await locks.withLock('order', async (again) => expect(again.fencingToken).toBe(lease.fencingToken));
    });
    await lease.release();
    await locked(lock, (next) => expect(next.fencingToken).toBeGreaterThan(lease.fencingToken));
  });

  it('the last token can be asked for, even when the lock is free', async () => {
    const [one, two] = (await world.services(2)).map((service) => service.getFencedLock('order'));
    expect(await one.getToken()).toBeNull();
    const first = await one.lock();
    expect(await two.getToken()).toBe(first.fencingToken);
    await first.release();
    expect(await two.getToken()).toBe(first.fencingToken);
    const next = await two.lock();
    expect(await one.getToken()).toBe(next.fencingToken);
    await next.release();
  });

  it('gives none when it stays busy, and one within the wait time', async () => {
    const [one, two] = (await world.services(2)).map((service) => service.getFencedLock('order'));
    await locked(one, async () => {
      expect(await two.tryLock()).toBeNull();
      expect(await two.tryLock(600)).toBeNull();
    });
    expect((await two.tryLock(5_000, 5_000))?.fencingToken).toEqual(expect.any(Number));
  });
});
