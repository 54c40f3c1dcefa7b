import { LockLostError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { startProcess } from '../../support/processes/start-process.js';
import { errorOf } from '../../support/section.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { ServerClock } from '../../support/servers/server-clock.js';
import { until } from '../../support/until.js';

const clock = ServerClock.make();

/** The clock of the server is set while locks are held. To do that with a real server, the test needs a C compiler. */
(clock === undefined ? describe.skip : describe)('a Redis whose clock is set', () => {
  let redis: RedisServer;
  const silent = { warn: () => {}, error: () => {} };

  beforeEach(async () => {
    setClock(0);
    redis = await startRedis({ env: clock?.env });
  });
  afterEach(() => redis.stop());
  afterAll(() => clock?.remove());

  const setClock = (seconds: number) => clock?.set(seconds);
  const open = (watchdogTimeout: number) =>
    createLockService({ connection: redis.url, shutdownTimeout: 100, watchdogTimeout, logger: silent });

  it('forward: ends a lease on which its holder relies until its next renewal reports the loss', async () => {
    const [one, other] = [open(6_000), open(6_000)];
    const first = await one.acquire('stock');
    setClock(60);
    const second = await other.acquire('stock', { waitTime: '5s' });
    expect([first.held, second.held]).toEqual([true, true]);
    // This makes the overlap harmless: the later holder has the higher token.
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    await until(() => first.signal.aborted);
    expect(await errorOf(first.release())).toBeInstanceOf(LockLostError);
    expect(second.held).toBe(true);
    await Promise.all([one.close(), other.close()]);
  });

  it('back: keeps the lock of a dead holder for that much longer, until it is released by force', async () => {
    const locks = open(6_000);
    const { child } = await startProcess('lock-holder.ts', redis.url, 'lock:', 'stock', '1000');
    setClock(-60);
    child.kill('SIGKILL');
    expect(await locks.tryAcquire('stock', { waitTime: '3s' })).toBeNull();
    expect(await redis.client().pttl('lock:stock')).toBeGreaterThan(50_000);
    await locks.forceRelease('stock');
    const lease = await locks.acquire('stock', { waitTime: 0 });
    await lease.release();
    await locks.close();
  });

  it('back: harms no holder that is alive, and tokens grow', async () => {
    const [one, other] = [open(3_000), open(3_000)];
    const first = await one.acquire('stock');
    setClock(-60);
    // The next renewal gives the key its usual lease again.
    await until(async () => (await redis.client().pttl('lock:stock')) <= 3_000);
    expect(await other.tryAcquire('stock', { waitTime: 0 })).toBeNull();
    await first.release();
    const second = await other.acquire('stock', { waitTime: '2s' });
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    await second.release();
    await Promise.all([one.close(), other.close()]);
  });
});
