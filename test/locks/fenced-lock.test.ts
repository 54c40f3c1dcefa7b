import { openWorld, STORES } from '../support/lock-world.js';
import { flow, locked } from './flow.js';

describe.each(STORES)('the fenced lock, on %s', (store) => {
  const world = openWorld(store);

  it('the token grows with each acquisition, also across instances', async () => {
    const services = await world.services(3);
    const tokens: number[] = [];
    for (let round = 0; round < 9; round++) {
      const lock = services[round % 3].getFencedLock('order');
      await flow(async () => {
        tokens.push(await lock.lockAndGetToken());
        await lock.unlock();
      });
    }
    for (const [n, token] of tokens.entries()) if (n > 0) expect(token).toBeGreaterThan(tokens[n - 1]);
    expect(tokens.every(Number.isSafeInteger)).toBe(true);
  });

  it('the token grows from one of many contenders to the next', async () => {
    const services = await world.services(3);
    const tokens: number[] = [];
    const take = (n: number) => {
      const lock = services[n % 3].getFencedLock('order');
      return flow(async () => {
        tokens.push(await lock.lockAndGetToken());
        await lock.unlock();
      });
    };
    await Promise.all(Array.from({ length: 60 }, (_, n) => take(n)));
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(60);
  });

  it('re-entry keeps it', () =>
    flow(async () => {
      const locks = await world.service();
      const lock = locks.getFencedLock('order');
      const token = await lock.lockAndGetToken();
      expect(await lock.lockAndGetToken()).toBe(token);
      expect(await lock.tryLockAndGetToken()).toBe(token);
      await locks.withLock('order', { type: 'fenced' }, (lease) => expect(lease.fencingToken).toBe(token));
      expect(lock.getHoldCount()).toBe(3);
      for (let n = 0; n < 3; n++) await lock.unlock();
      expect(await lock.lockAndGetToken()).toBeGreaterThan(token);
      await lock.unlock();
    }));

  it('knows the last token, also of another instance, and when it is free', () =>
    flow(async () => {
      const [one, two] = (await world.services(2)).map((service) => service.getFencedLock('order'));
      expect(await one.getToken()).toBeNull();
      const token = await one.lockAndGetToken();
      expect(await two.getToken()).toBe(token);
      await one.unlock();
      expect(await two.getToken()).toBe(token);
      await two.lock();
      expect(await one.getToken()).toBeGreaterThan(token);
      await two.unlock();
    }));

  it('gives no token while it is busy', async () => {
    const [one, two] = (await world.services(2)).map((service) => service.getFencedLock('order'));
    await locked(one, async () => {
      expect(await flow(() => two.tryLockAndGetToken())).toBeNull();
      expect(await flow(() => two.tryLockAndGetToken(200))).toBeNull();
    });
    expect(await flow(() => two.tryLockAndGetToken(200, 5_000))).toEqual(expect.any(Number));
    expect(await two.remainTimeToLive()).toBeLessThanOrEqual(5_000);
  });
});
