import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockBackend } from '../../lib/backends/lock-backend.js';
import { LockAbortedError } from '../../lib/engine/errors.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { ms, openVirtualWorld, openWorld } from '../support/lock-world.js';
import { startTcpProxy, type TcpProxy } from '../support/network/tcp-proxy.js';
import { errorOf } from '../support/section.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';

const SHUTDOWN = 1_000;
const COMMAND = 2_000;
/** What a slow machine may add. Before the limit existed, close() took a commandTimeout for each of many changes. */
const SLACK = 3_000;

describe('close() while Redis does not answer', () => {
  let servers: RedisServer[];
  let proxies: TcpProxy[];
  const silent = { warn: () => {}, error: () => {} };
  const options = { shutdownTimeout: SHUTDOWN, commandTimeout: COMMAND, logger: silent };

  beforeAll(async () => {
    servers = await Promise.all([1, 2, 3].map(() => startRedis()));
    proxies = await Promise.all(servers.map(({ port }) => startTcpProxy(port)));
  });
  afterAll(async () => {
    await Promise.all(proxies.map((proxy) => proxy.stop()));
    for (const server of servers) await server.stop();
  });

  /**
   * Leaves requests pending: several kinds of changes, queued one behind the other in several semaphores, and locks.
   * Returns the errors with which they end.
   */
  const burden = async (locks: LockService, withSemaphores: boolean): Promise<Promise<Error>[]> => {
    const lease = await locks.acquire('held');
    const semaphores = withSemaphores ? ['mail', 'disk', 'bank'].map((name) => locks.getSemaphore(name)) : [];
    const licences = locks.getPermitExpirableSemaphore.bind(locks);
    for (const semaphore of semaphores) await semaphore.trySetPermits(5);
    for (const proxy of proxies) proxy.cutHalfOpen();
    for (const server of servers) server.pause();
    const left: Promise<unknown>[] = [
      locks.acquire('busy'),
      locks.acquire(['a', 'b']),
      locks.acquire('q', { type: 'write' }),
    ];
    for (const semaphore of semaphores) {
      left.push(semaphore.release(), semaphore.addPermits(1), semaphore.trySetPermits(9), semaphore.drainPermits());
      left.push(semaphore.release(2), semaphore.addPermits(3), semaphore.acquire());
    }
    if (withSemaphores)
      left.push(licences('seats').setPermits(3), licences('seats').addPermits(1), licences('seats').acquire());
    void lease.release().catch(() => {});
    return left.map(errorOf);
  };

  const heal = async () => {
    for (const server of servers) server.resume();
    await Promise.all(proxies.map((proxy) => proxy.heal()));
  };

  it.each([
    ['one that is stopped', () => [servers[0]], true],
    ['one behind a network that carries nothing', () => [proxies[0]], true],
    ['a quorum', () => proxies, false],
  ])(
    'is over within shutdownTimeout and one commandTimeout: %s',
    async (_, places, withSemaphores) => {
      const urls = places().map(({ url }) => url);
      const where = urls.length > 1 ? { quorum: urls } : { connection: urls[0] };
      const locks = createLockService({ ...where, ...options, keyPrefix: `lock:${performance.now()}:` });
      try {
        const left = await burden(locks, withSemaphores);
        await sleep(100);
        const began = performance.now();
        await locks.close();
        expect(performance.now() - began).toBeLessThan(SHUTDOWN + COMMAND + SLACK);
        for (const error of await Promise.all(left)) {
          expect(error.name).toMatch(/^Lock(Aborted|Unavailable)Error$/);
          expect(error.message).not.toBe('');
        }
        await until(() => socketsTo(places()) === 0);
      } finally {
        await heal();
      }
    },
    60_000,
  );
});

describe('close()', () => {
  const world = openVirtualWorld();

  it.each([
    ['does not end', () => new Promise<never>(() => {})],
    [
      'ends late',
      (runtime: { timer(delay: number, callback: () => void): unknown }) =>
        new Promise<void>((resolve) => void runtime.timer(60_000, resolve)),
    ],
  ])('of a backend that %s is over within shutdownTimeout and one commandTimeout', async (_, hang) => {
    const { locks, backend, runtime } = await world.process({ shutdownTimeout: ms(1_000), commandTimeout: 300 });
    (backend as LockBackend).close = () => hang(runtime);
    await locks.acquire('order');
    await runtime.until(locks.close());
    expect(runtime.monotonic()).toBeLessThanOrEqual(1_300);
  });

  it('waits for a commandTimeout after drain(), not for shutdownTimeout again', async () => {
    const { locks, backend, runtime } = await world.process({ shutdownTimeout: ms(10_000), commandTimeout: 300 });
    await runtime.until(locks.engine.drain());
    await runtime.advance(20_000);
    const since = runtime.monotonic();
    backend.close = () => new Promise(() => {});
    await runtime.until(locks.close());
    expect(runtime.monotonic() - since).toBeLessThanOrEqual(300);
  });
});

describe.each(['memory', 'Redis'] as const)('close() of a service whose callers wait (%s)', (store) => {
  const world = openWorld(store);

  it.each(['fair', 'write'] as const)('leaves nothing behind that others wait for: %s', async (type) => {
    const [holder, waiter, next] = await world.processes(3);
    const lease = await holder.locks.acquire('order', { type: type === 'fair' ? 'fair' : 'read' });
    const aborted = Array.from({ length: 20 }, () => errorOf(waiter.locks.acquire('order', { type })));
    await until(() => waiter.backend.isAsleep);
    await waiter.locks.close();
    for (const error of await Promise.all(aborted)) expect(error).toBeInstanceOf(LockAbortedError);

    await lease.release();
    // A place in the queue would go first, and an announced writer would keep readers out.
    const free = await next.locks.tryAcquire('order', { type: type === 'fair' ? 'fair' : 'read' });
    expect(free).not.toBeNull();
    await free?.release();
  });

  it('also if it is closed while their first requests are under way', async () => {
    const [holder, waiter, next] = await world.processes(3);
    for (let round = 0; round < 5; round++) {
      const name = `order:${round}`;
      const lease = await holder.locks.acquire(name, { type: 'fair' });
      const service = round === 0 ? waiter : await world.process();
      const aborted = errorOf(service.locks.acquire(name, { type: 'fair' }));
      await service.locks.close();
      expect(await aborted).toBeInstanceOf(LockAbortedError);
      await lease.release();
      const free = await next.locks.tryAcquire(name, { type: 'fair' });
      expect(free).not.toBeNull();
      await free?.release();
    }
  });
});

/** The sockets of this process that are connected to this port. */
function socketsTo(places: readonly { readonly port: number }[]): number {
  const ports = places.map(({ port }) => port);
  const { _getActiveHandles: handles } = process as unknown as { _getActiveHandles(): readonly Socket[] };
  return handles().filter(({ remotePort, destroyed }) => !destroyed && ports.includes(remotePort as number)).length;
}
