import { setTimeout as sleep } from 'node:timers/promises';
import { LockBusyError, LockUnavailableError } from '../../../lib/engine/errors.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openWorld } from '../../support/lock-world.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';

/** How long each load runs, in milliseconds. */
const DURATION = 3_000;

/** The errors of the callers that did not get the lock. */
interface Refusals {
  busy: number;
  unavailable: number;
}

/**
 * Two processes that want the same lock, each with callers that wait without a limit, callers that try once, and
 * callers with a short waitTime. Such a refusal coincides with requests and releases that were just sent.
 */
async function refusalsUnderLoad(services: readonly LockService[]): Promise<Record<'tries' | 'waits', Refusals>> {
  const tries: Refusals = { busy: 0, unavailable: 0 };
  const waits: Refusals = { busy: 0, unavailable: 0 };
  const end = performance.now() + DURATION;
  const repeat = async (round: () => Promise<void>) => {
    while (performance.now() < end) await round();
  };
  const note = (refusals: Refusals) => (error: unknown) => {
    if (error instanceof LockBusyError) refusals.busy++;
    else if (error instanceof LockUnavailableError) {
      refusals.unavailable++;
    } else throw error;
  };
  const work = services.flatMap((locks) => [
    ...[1, 2, 3].map((hold) => repeat(() => locks.withLock('order', () => sleep(hold)))),
    ...[1, 2].map((pause) =>
      repeat(() =>
        locks
          .acquire('order', { waitTime: 0 })
          .then((lease) => lease.release(), note(tries))
          .then(() => sleep(pause)),
      ),
    ),
    ...[20, 25, 30].map((waitTime) =>
      repeat(() =>
        locks
          .acquire('order', { waitTime })
          .then((lease) => lease.release(), note(waits))
          .then(() => sleep(1)),
      ),
    ),
  ]);
  await Promise.all(work);
  return { tries, waits };
}

describe('on a healthy Redis', () => {
  const world = openWorld('Redis');
  let proxy: TcpProxy;

  beforeAll(async () => {
    proxy = await startTcpProxy(world.redis.port);
  });
  afterAll(() => proxy.stop());

  it.each([0, 4])(
    'with a round trip of %i ms, no caller that finds the lock busy fails because of an outage',
    async (trip) => {
      const services = await world.services(2, { connection: proxy.url });
      for (const locks of services) await locks.withLock('order', () => {});
      proxy.delay(trip / 2);
      const refusals = await refusalsUnderLoad(services);
      proxy.delay(0);
      if (process.env.SHOW_REFUSALS) console.log(`round trip ${trip} ms`, JSON.stringify(refusals));
      expect(refusals.tries.busy).toBeGreaterThan(0);
      expect(refusals.waits.busy).toBeGreaterThan(0);
      expect([refusals.tries.unavailable, refusals.waits.unavailable]).toEqual([0, 0]);
    },
  );
});
