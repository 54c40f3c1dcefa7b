import { setTimeout as sleep } from 'node:timers/promises';
import { openWorld } from '../../support/lock-world.js';
import { Room } from '../../support/room.js';

const PERMITS = 3;

/** The rounds of each caller, while a connection breaks every 15 ms. */
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
