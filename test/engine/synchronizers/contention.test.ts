import { setTimeout as sleep } from 'node:timers/promises';
import { LockUnavailableError } from '../../../lib/engine/errors.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openWorld, STORES } from '../../support/lock-world.js';
import { Room } from '../../support/room.js';
import { until } from '../../support/until.js';

const PERMITS = 3;

/** On a slow machine, a wait of a few milliseconds ends before Redis has answered. */
function unlessUnanswered(error: Error): false {
  if (error instanceof LockUnavailableError) return false;
  throw error;
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
