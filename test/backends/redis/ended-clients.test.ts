import { Redis } from 'ioredis';
import { LockLostError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { itOfIoredis } from '../../support/client-under-test.js';
import { errorOf } from '../../support/section.js';
import { freePort } from '../../support/servers/free-port.js';
import { until } from '../../support/until.js';
import { RedisWorld } from './redis-world.js';

const BY_ITS_OWNER =
  /was closed by its owner \(quit\(\) or disconnect\(\)\): close the lock service first, or give it its own connection/;

describe('a client that has ended', () => {
  const world = new RedisWorld();
  const opened: LockService[] = [];

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((locks) => locks.close()));
    await world.redis.flushall();
  });

  function service(connection: RedisLockOptions['connection'], options: Partial<RedisLockOptions> = {}): LockService {
    const logger = { warn: () => {}, error: () => {} };
    const locks = createLockService({ connection, logger, shutdownTimeout: 50, ...options });
    opened.push(locks);
    return locks;
  }

  async function isRefused(call: Promise<unknown>, message = BY_ITS_OWNER): Promise<void> {
    const error = await errorOf(call);
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(message);
    expect(error.cause).toMatchObject({ kind: 'closed' });
  }

  it.each([
    ['quit()', (client: Redis) => client.quit()],
    ['disconnect()', (client: Redis) => client.disconnect()],
  ])('after %s of its owner refuses every acquisition, and says what to do', async (_, end) => {
    const client = world.server.client();
    const locks = service(client);
    await (await locks.acquire('order')).release();
    await end(client);
    await until(() => client.status === 'end');
    await isRefused(locks.acquire('order'));
    await isRefused(locks.tryAcquire('order'));
    await isRefused(locks.acquire('order', { waitTime: '1m' }));
    await isRefused(locks.acquire(['order', 'stock']));
    await isRefused(locks.acquire('order', { type: 'fair' }));
    await isRefused(locks.getFencedLock('order').lock());
    await isRefused(locks.getMultiLock(locks.getLock('order'), locks.getFairLock('stock')).lock());
    await isRefused(locks.getSemaphore('permits').acquire());
    await isRefused(locks.getSemaphore('permits').release());
    await isRefused(locks.getPermitExpirableSemaphore('licences').acquire());
    await isRefused(locks.getCountDownLatch('latch').await());
    await isRefused(locks.isLocked('order'));
  });

  it('refuses every caller that was waiting already', async () => {
    const client = world.server.client();
    const locks = service(client);
    const held = await service(world.server.url).acquire('order');
    const waiting = [1, 2, 3].map(() => errorOf(locks.acquire('order')));
    await until(
      async () => (await world.redis.pubsub('CHANNELS', 'nestjs_redis_lock_turn:{lock:order}:*')).length === 1,
    );
    client.disconnect();
    await until(() => client.status === 'end');
    await held.release();
    for (const error of await Promise.all(waiting)) expect(error).toMatchObject({ name: 'LockUnavailableError' });
  });

  it('refuses callers that wait for a lock that nobody releases, because the connection is checked', async () => {
    const client = world.server.client();
    const locks = service(client);
    const permits = locks.getSemaphore('permits');
    await permits.trySetPermits(0);
    const latch = locks.getCountDownLatch('latch');
    await latch.trySetCount(1);
    const held = await service(world.server.url).acquire('order');
    const waiting = [
      permits.acquire(),
      latch.await(),
      locks.acquire('order'),
      locks.acquire('order', { type: 'fair' }),
    ].map(errorOf);
    // The holder has a subscription, too.
    const waitedFor = async () =>
      (await world.redis.pubsub('CHANNELS')).filter((name) => !/lock_client/.test(String(name)));
    await until(async () => (await waitedFor()).length === 4);
    client.disconnect();
    for (const error of await Promise.all(waiting)) {
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(BY_ITS_OWNER);
    }
    await held.release();
  });

  it('loses a lock that it holds at the deadline of the lease, not before', async () => {
    const client = world.server.client();
    const warnings: string[] = [];
    const logger = { warn: (message: string) => void warnings.push(message), error: () => {} };
    const locks = service(client, { watchdogTimeout: 900, logger });
    const lease = await locks.acquire('order');
    client.disconnect();
    expect(lease.held).toBe(true);
    await until(() => lease.signal.aborted);
    expect(lease.held).toBe(false);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    const ofBusyMachines = /^The event loop of this process was blocked/;
    expect(warnings.filter((line) => !ofBusyMachines.test(line))).toEqual([
      expect.stringMatching(/Could not renew the lock 'order'.*was closed by its owner/),
      expect.stringMatching(/^The lock 'order' was lost: /),
    ]);
  });

  itOfIoredis('refuses every acquisition, even if it is ours and its retryStrategy gave up', async () => {
    const port = await freePort();
    for (const connection of [
      { host: '127.0.0.1', port, retryStrategy: () => null },
      { nodes: [{ host: '127.0.0.1', port }], options: { clusterRetryStrategy: () => null } },
      { sentinels: [{ host: '127.0.0.1', port }], name: 'mymaster', sentinelRetryStrategy: () => null },
    ]) {
      const locks = service(connection);
      await isRefused(
        locks.acquire('order'),
        /ioredis has given up this connection.*retryStrategy.*\((.*ECONNREFUSED.*|.*Connection is closed.*|.*Failed to refresh slots cache.*)\)/,
      );
    }
  });
});
