import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { LockUnavailableError } from '../../lib/engine/errors.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { openWorld, STORES } from '../support/lock-world.js';
import { until } from '../support/until.js';

const PERMITS = 3;

/** On a slow machine, a wait of a few milliseconds is over before Redis has answered. */
function unlessUnanswered(error: Error): false {
  if (error instanceof LockUnavailableError) return false;
  throw error;
}

/** Counts permits in use, and remembers the most that were in use at once. */
class Room {
  served = 0;
  most = 0;
  private inside = 0;

  async visit(permits = 1): Promise<void> {
    this.inside += permits;
    this.most = Math.max(this.most, this.inside);
    await setImmediate();
    this.inside -= permits;
    this.served++;
  }
}

describe.each(STORES)('contention in %s', (store) => {
  const world = openWorld(store);

  const contend = (services: LockService[], callers: number, work: (locks: LockService, n: number) => Promise<void>) =>
    Promise.all(services.flatMap((locks) => Array.from({ length: callers }, (_, n) => work(locks, n))));

  it('several instances never hold more permits than there are', async () => {
    const services = await world.services(4);
    const room = new Room();
    await services[0].getSemaphore('room').trySetPermits(PERMITS);
    await contend(services, 25, async (locks, n) => {
      const semaphore = locks.getSemaphore('room');
      const permits = (n % PERMITS) + 1;
      for (let round = 0; round < 4; round++) {
        await semaphore.acquire(permits);
        await room.visit(permits);
        await semaphore.release(permits);
      }
    });
    expect(room.served).toBe(4 * 25 * 4);
    expect(room.most).toBe(PERMITS);
    expect(await services[0].getSemaphore('room').availablePermits()).toBe(PERMITS);
  });

  it('several instances never hold more permits with ids than there are', async () => {
    const services = await world.services(4);
    const room = new Room();
    await services[0].getPermitExpirableSemaphore('room').trySetPermits(PERMITS);
    await contend(services, 25, async (locks, n) => {
      const semaphore = locks.getPermitExpirableSemaphore('room');
      for (let round = 0; round < 4; round++) {
        const ids = await semaphore.acquireMany((n % 2) + 1, n % 3 === 0 ? '1m' : undefined);
        await room.visit(ids.length);
        await semaphore.release(ids);
      }
    });
    expect(room.served).toBe(4 * 25 * 4);
    expect(room.most).toBe(PERMITS);
    expect(await services[0].getPermitExpirableSemaphore('room').availablePermits()).toBe(PERMITS);
    expect(await services[0].getPermitExpirableSemaphore('room').acquiredPermits()).toBe(0);
  });

  it('callers that give up at any moment leave no permit taken', async () => {
    const services = await world.services(3);
    const room = new Room();
    await services[0].getSemaphore('room').trySetPermits(PERMITS);
    await services[0].getPermitExpirableSemaphore('cell').trySetPermits(PERMITS);
    await contend(services, 30, async (locks, n) => {
      const [semaphore, cell] = [locks.getSemaphore('room'), locks.getPermitExpirableSemaphore('cell')];
      for (let round = 0; round < 4; round++) {
        const acquired = semaphore.tryAcquire((n % 3) + 1, (n * 7) % 30);
        if (await acquired.catch(unlessUnanswered)) {
          await room.visit((n % 3) + 1);
          await semaphore.release((n % 3) + 1);
        }
        const leave = new AbortController();
        void sleep((n * 5) % 20).then(() => leave.abort());
        const id = await cell.acquire(undefined, { signal: leave.signal }).catch(() => undefined);
        if (id !== undefined) await cell.release(id);
      }
    });
    expect(room.most).toBeLessThanOrEqual(PERMITS);
    const [semaphore, cell] = [services[0].getSemaphore('room'), services[0].getPermitExpirableSemaphore('cell')];
    await until(async () => (await semaphore.availablePermits()) === PERMITS);
    await until(async () => (await cell.availablePermits()) === PERMITS);
    expect(await cell.acquiredPermits()).toBe(0);
  });

  it('permits of callers that never release become available when their leases end', async () => {
    const services = await world.services(3);
    await services[0].getPermitExpirableSemaphore('room').trySetPermits(PERMITS);
    let served = 0;
    await contend(services, 4, async (locks) => {
      await locks.getPermitExpirableSemaphore('room').acquire(200);
      served++;
    });
    expect(served).toBe(12);
    await until(async () => (await services[1].getPermitExpirableSemaphore('room').availablePermits()) === PERMITS);
  });
});

/** Of each caller, while a connection breaks every 15 ms. */
const ROUNDS = 6;

describe('contention in Redis while its connections break', () => {
  const world = openWorld('Redis');

  it('no permit is taken or released twice', async () => {
    const services = await world.services(4);
    const room = new Room();
    const redis = world.redis.client();
    await services[0].getSemaphore('room').trySetPermits(PERMITS);
    await services[0].getPermitExpirableSemaphore('cell').trySetPermits(PERMITS);
    await services[0].getCountDownLatch('done').trySetCount(4 * 20 * ROUNDS + 1);
    let over = false;
    const breaking = (async () => {
      for (let n = 0; !over; n++) {
        await sleep(15);
        await redis.call('CLIENT', 'KILL', 'TYPE', n % 3 === 0 ? 'pubsub' : 'normal', 'SKIPME', 'yes');
      }
    })();
    const work = Promise.all(
      services.flatMap((locks) =>
        Array.from({ length: 20 }, async (_, n) => {
          const [semaphore, cell] = [locks.getSemaphore('room'), locks.getPermitExpirableSemaphore('cell')];
          for (let round = 0; round < ROUNDS; round++) {
            const permits = (n % PERMITS) + 1;
            await semaphore.acquire(permits);
            await room.visit(permits);
            await semaphore.release(permits);
            await cell.release(await cell.acquire('1m'));
            await locks.getCountDownLatch('done').countDown();
          }
        }),
      ),
    );
    await work.finally(() => {
      over = true;
    });
    await breaking;
    expect(room.served).toBe(4 * 20 * ROUNDS);
    expect(room.most).toBe(PERMITS);
    expect(await services[0].getSemaphore('room').availablePermits()).toBe(PERMITS);
    expect(await services[0].getPermitExpirableSemaphore('cell').availablePermits()).toBe(PERMITS);
    expect(await services[0].getPermitExpirableSemaphore('cell').acquiredPermits()).toBe(0);
    expect(await services[0].getCountDownLatch('done').getCount()).toBe(1);
  }, 120_000);
});
