import type { Runtime } from '../../../lib/backends/runtime.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import { acrossBlockedLoop, itOfIoredis } from '../../support/client-under-test.js';
import { startTcpProxy } from '../../support/network/tcp-proxy.js';
import { blockEventLoop } from '../../support/runtime/block-event-loop.js';
import { freePort } from '../../support/servers/free-port.js';
import { NEVER, woken } from '../../support/time-limits.js';
import { until } from '../../support/until.js';
import { failure, RedisWorld, succeeds } from './redis-world.js';

describe('when Redis cannot be reached', () => {
  const world = new RedisWorld();
  const rejections: unknown[] = [];
  const onRejection = (reason: unknown) => rejections.push(reason);

  beforeAll(() => void process.on('unhandledRejection', onRejection));
  afterAll(() => {
    process.off('unhandledRejection', onRejection);
    expect(rejections).toEqual([]);
  });

  it('every call is rejected within the command timeout, and works again afterwards', async () => {
    const backend = world.backend({ commandTimeout: 300 });
    const lock = world.request();
    await until(() => succeeds(backend.acquire(lock)));
    world.server.pause();
    const since = performance.now();
    const calls = [
      ...Array.from({ length: 400 }, () => backend.acquire(world.request())),
      backend.renew(lock),
      backend.release(lock),
      backend.inspect(lock.key),
      backend.forceRelease(lock.key),
      backend.removeWaiter({ ...lock, type: 'fair' }),
    ];
    const outcomes = await Promise.allSettled(calls);
    const waited = performance.now() - since;
    world.server.resume();
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { kind: 'unavailable' } });
    expect(waited).toBeGreaterThanOrEqual(295);
    expect(waited).toBeLessThan(3_000);
    const again = world.request();
    await until(() => succeeds(backend.acquire(again)));
  });

  it('a request that timed out before it was sent is never executed', async () => {
    const backend = world.backend({ commandTimeout: 300 });
    const first = world.request();
    await until(() => succeeds(backend.acquire(first)));
    await world.server.kill();
    const locks = Array.from({ length: 300 }, () => world.request());
    const errors = await Promise.all(locks.map((lock) => failure(backend.acquire(lock))));
    await world.server.start();
    const lock = world.request();
    await until(() => succeeds(backend.acquire(lock)));
    const refused = locks.filter((_, n) => errors[n].outcome === 'refused');
    expect(refused.length).toBeGreaterThan(0);
    for (const { key } of refused) expect(await world.redis.exists(key)).toBe(0);
  });

  it('a half-open connection is replaced', async () => {
    const proxy = await startTcpProxy(world.server.port);
    const backend = world.backend({ connection: proxy.url, commandTimeout: 300 });
    const lock = world.request();
    await until(() => succeeds(backend.acquire(lock)));
    proxy.cutHalfOpen();
    await failure(backend.renew(lock));
    await proxy.heal();
    await until(() => succeeds(backend.renew(lock)));
    await backend.close();
    await proxy.stop();
  });

  it('a connection that became half open while nobody used it is replaced before somebody does', async () => {
    const proxy = await startTcpProxy(world.server.port);
    const timer: Runtime['timer'] = (delay, ...rest) => nodeRuntime.timer(delay === 30_000 ? 300 : delay, ...rest);
    const runtime = { ...nodeRuntime, timer };
    const backend = world.backend({ connection: proxy.url, commandTimeout: 300, runtime });
    await until(() => succeeds(backend.acquire(world.request())));
    const { accepted } = proxy;
    proxy.cutHalfOpen();
    await proxy.heal();
    await until(() => proxy.accepted > accepted);
    expect(await backend.acquire(world.request())).toMatchObject({ acquired: true });
    expect(world.errors.map(String).join()).toContain('the server sent nothing within 300 ms');
    await backend.close();
    await proxy.stop();
  });

  it('answers that arrive while the event loop is blocked count, and the connection is kept', async () => {
    const backend = world.backend({ commandTimeout: 200 });
    const lock = world.request();
    const calls: (() => Promise<unknown>)[] = [
      () => backend.acquire(lock),
      () => backend.inspect(lock.key),
      () => backend.renew(lock),
      () => backend.release(lock),
    ];
    for (const call of calls) await until(() => succeeds(call())); // so that the server knows the scripts
    const before = await world.connections('normal');
    world.errors.length = 0;
    for (const call of calls) expect(await acrossBlockedLoop(call(), 1_000)).not.toBe(false);
    expect(await world.connections('normal')).toEqual(before);
    expect(world.errors).toEqual([]);
  });

  it('a request that was made before the event loop was blocked has the whole command timeout afterwards', async () => {
    const backend = world.backend({ commandTimeout: 500 });
    const lock = world.request();
    const transfer = { ...lock, from: lock.owner, to: world.owner() };
    await until(() => succeeds(backend.acquire(lock)));
    const calls = [() => backend.acquire(lock), () => backend.inspect(lock.key), () => backend.transfer(transfer)];
    for (const call of calls) await until(() => succeeds(call())); // so that the server knows the scripts
    for (const call of calls) {
      await until(() => succeeds(backend.forceRelease(lock.key)));
      await until(() => succeeds(backend.acquire(lock)));
      const answer = call();
      blockEventLoop(1_000);
      expect(await answer).toBeTruthy();
    }
  });

  it('a request that was sent, but not yet written, when the event loop was blocked is answered', async () => {
    const backend = world.backend({ commandTimeout: 500 });
    const lock = world.request();
    await until(() => succeeds(backend.acquire(lock)));
    const calls = [() => backend.inspect(lock.key), () => backend.renew(lock)];
    for (const call of calls) await until(() => succeeds(call())); // so that the server knows the scripts
    for (const call of calls) {
      const answer = call();
      process.nextTick(() => blockEventLoop(1_000));
      expect(await answer).toBeTruthy();
    }
  });

  itOfIoredis('a connection is kept for as long as its own socketTimeout allows', async () => {
    const { port } = world.server;
    const backend = world.backend({
      connection: { host: '127.0.0.1', port, socketTimeout: 60_000 },
      commandTimeout: 200,
    });
    const lock = world.request();
    await until(() => succeeds(backend.acquire(lock)));
    const before = await world.connections('normal');
    world.server.pause();
    await failure(backend.renew(lock));
    await failure(backend.renew(lock));
    world.server.resume();
    await until(() => succeeds(backend.renew(lock)));
    expect(await world.connections('normal')).toEqual(before);
  });

  itOfIoredis('a release whose answer was lost is sent again, and reports that', async () => {
    const proxy = await startTcpProxy(world.server.port);
    const backend = world.backend({ connection: proxy.url });
    const lock = world.request();
    await until(() => succeeds(backend.acquire(lock)));
    expect(await backend.release(lock)).toEqual({ released: true, listeners: 0, published: false, resent: false });
    await backend.acquire(lock);
    proxy.dropReplies({ after: /PUBLISH/, close: true });
    const release = backend.release(lock);
    await until(() => proxy.droppedReplies > 0);
    await proxy.heal();
    expect(await release).toEqual({
      released: false,
      listeners: 0,
      published: false,
      resent: true,
      at: expect.any(Number),
    });
    await backend.close();
    await proxy.stop();
  });

  itOfIoredis(
    'a release whose answer was lost reports that it was sent again also when the server has lost its script',
    async () => {
      const proxy = await startTcpProxy(world.server.port);
      const backend = world.backend({ connection: proxy.url });
      const lock = world.request();
      await until(() => succeeds(backend.acquire(lock)));
      await backend.release(lock); // so that the server knows the script
      await backend.acquire(lock);
      proxy.dropReplies({ after: /PUBLISH/, close: true });
      const release = backend.release(lock);
      await until(() => proxy.droppedReplies > 0);
      await world.redis.script('FLUSH');
      await proxy.heal();
      expect(await release).toEqual({
        released: false,
        listeners: 0,
        published: false,
        resent: true,
        at: expect.any(Number),
      });
      await backend.close();
      await proxy.stop();
    },
  );

  itOfIoredis('an acquisition whose answer was lost is sent again, and acquires the lock once', async () => {
    const proxy = await startTcpProxy(world.server.port);
    const backend = world.backend({ connection: proxy.url });
    await backend.acquire(world.request());
    proxy.dropReplies({ after: /evalsha/, close: true });
    const lock = world.request();
    const acquisition = backend.acquire(lock);
    await until(() => proxy.droppedReplies > 0);
    await proxy.heal();
    expect(await acquisition).toMatchObject({ acquired: true });
    expect(await world.redis.hgetall(lock.key)).toEqual({ [lock.owner]: '1' });
    await backend.close();
    await proxy.stop();
  });

  it('from the start, calls are refused and errors reported', async () => {
    const port = await freePort();
    const backend = world.backend({ connection: { host: '127.0.0.1', port }, commandTimeout: 200 });
    expect(await failure(backend.acquire(world.request()))).toMatchObject({ kind: 'unavailable', outcome: 'refused' });
    expect(world.errors.length).toBeGreaterThan(0);
  });

  it('a backend can be closed, and rejects pending calls', async () => {
    const backend = world.backend({ commandTimeout: 10_000 });
    await backend.acquire(world.request());
    world.server.pause();
    const calls = [backend.acquire(world.request()), backend.inspect('lock:x'), backend.renew(world.request())];
    const failures = calls.map(failure);
    const closing = backend.close();
    for (const each of await Promise.all(failures)) expect(each.message).toContain('was closed');
    world.server.resume();
    await closing;
    expect(await failure(backend.acquire(world.request()))).toMatchObject({ kind: 'unavailable' });
  });

  it('a closed backend rejects calls at once, also those of a kind that it never sent', async () => {
    const backend = world.backend({ commandTimeout: NEVER });
    const lock = world.request();
    await backend.close();
    for (const call of [
      backend.acquire(lock),
      backend.release(lock),
      backend.renew(lock),
      backend.acquireAll([lock]),
    ]) {
      expect((await woken(failure(call))).message).toContain('the lock backend was closed');
    }
  });

  it('a backend that never had a connection can be closed', async () => {
    for (const connection of [
      { host: '127.0.0.1', port: await freePort() },
      { nodes: [{ host: '127.0.0.1', port: await freePort() }] },
    ]) {
      const backend = world.backend({ connection, commandTimeout: 200 });
      backend.subscribe('lock:x', 'reentrant', 'c', () => {});
      await failure(backend.acquire(world.request()));
      await backend.close();
    }
  });
});
