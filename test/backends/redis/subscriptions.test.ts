import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import type { Runtime } from '../../../lib/backends/runtime.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import { acrossBlockedLoop, itOfIoredis } from '../../support/client-under-test.js';
import { startTcpProxy } from '../../support/network/tcp-proxy.js';
import { until } from '../../support/until.js';
import { CLIENT, RedisWorld, WakeRecorder } from './redis-world.js';

describe('subscriptions in Redis', () => {
  const world = new RedisWorld();
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);

  beforeAll(() => void process.on('warning', onWarning));
  afterAll(() => {
    process.off('warning', onWarning);
    expect(warnings.filter(({ name }) => name === 'MaxListenersExceededWarning')).toEqual([]);
  });

  const subscribe = (
    backend: RedisBackend,
    key: string,
    wakes = new WakeRecorder(),
    type: 'reentrant' | 'fair' = 'reentrant',
  ) => ({
    wakes,
    ...backend.subscribe(key, type, CLIENT, wakes.listen),
  });
  const subscribers = async (key: string) => (await world.redis.pubsub('NUMSUB', `redisson_lock__channel:{${key}}`))[1];

  it('open a second connection only with the first of them', async () => {
    const backend = world.backend();
    await backend.acquire(world.request());
    expect(await world.connections('pubsub')).toEqual([]);
    await subscribe(backend, world.key()).ready;
    expect(await world.connections('pubsub')).toHaveLength(1);
  });

  it('keep their connection when the event loop was blocked', async () => {
    const backend = world.backend({ commandTimeout: 200 });
    const { wakes, ready } = subscribe(backend, world.key());
    await ready;
    const before = await world.connections('pubsub');
    await acrossBlockedLoop(subscribe(backend, world.key()).ready, 1_000);
    await sleep(50);
    expect(await world.connections('pubsub')).toEqual(before);
    expect(wakes.count('resync')).toBe(0);
    expect(world.errors).toEqual([]);
  });

  it('share one connection, and one subscription for each channel', async () => {
    const backend = world.backend();
    const keys = Array.from({ length: 700 }, () => world.key());
    const work = () => Promise.all([...keys, ...keys].map((key) => subscribe(backend, key).ready));
    const { subscribe: commands } = await world.commands(work);
    expect(commands).toBeLessThanOrEqual(2);
    expect(await world.connections('pubsub')).toHaveLength(1);
    expect(await subscribers(keys[0])).toBe(1);
  });

  it('end with their last listener, not before', async () => {
    const backend = world.backend();
    const key = world.key();
    const [one, two] = [subscribe(backend, key), subscribe(backend, key)];
    await two.ready;
    one.close();
    one.close();
    await world.redis.publish(`redisson_lock__channel:{${key}}`, '0');
    await until(() => two.wakes.count('message') === 1);
    expect(one.wakes.all).toEqual([]);
    two.close();
    await until(async () => (await subscribers(key)) === 0);
  });

  it('that are closed in the same tick are never sent', async () => {
    const backend = world.backend();
    await subscribe(backend, world.key()).ready;
    const key = world.key();
    const work = async () => {
      subscribe(backend, key).close();
      await subscribe(backend, world.key()).ready;
    };
    expect(await world.commands(work)).toEqual({ subscribe: 1 });
  });

  it('to a fair lock receive messages for the owners of one client', async () => {
    const backend = world.backend();
    const { wakes, ready } = subscribe(backend, 'lock:a*b', new WakeRecorder(), 'fair');
    await ready;
    expect(await world.redis.publish(`redisson_lock__channel:{lock:a*b}:${CLIENT}:7`, '0')).toBe(1);
    expect(await world.redis.publish(`redisson_lock__channel:{lock:a*b}:another-client:7`, '0')).toBe(0);
    expect(await world.redis.publish(`redisson_lock__channel:{lock:axb}:${CLIENT}:7`, '0')).toBe(0);
    await until(() => wakes.all.length > 0);
    expect(wakes.all).toEqual([{ kind: 'message', owner: `${CLIENT}:7` }]);
  });

  it('are restored after the connection was killed, and every listener is notified', async () => {
    const backend = world.backend();
    const keys = Array.from({ length: 30 }, () => world.key());
    const all = keys.map((key) => subscribe(backend, key));
    await Promise.all(all.map(({ ready }) => ready));
    const [connection] = await world.connections('pubsub');
    await world.redis.client('KILL', 'ID', connection);
    await until(() => all.every(({ wakes }) => wakes.count('resync') === 1));
    await world.redis.publish(`redisson_lock__channel:{${keys[29]}}`, '0');
    await until(() => all[29].wakes.count('message') === 1);
    expect(await world.connections('pubsub')).toHaveLength(1);
  });

  it('that are made in an outage wait for its end', async () => {
    const backend = world.backend({ commandTimeout: 300 });
    const before = subscribe(backend, world.key());
    await before.ready;
    await world.server.kill();
    const during = subscribe(backend, world.key());
    let isReady = false;
    void during.ready.then(() => {
      isReady = true;
    });
    await until(() => world.errors.length > 0);
    expect(isReady).toBe(false);
    await world.server.start();
    await during.ready;
    await until(() => before.wakes.count('resync') === 1);
    expect(during.wakes.all).toEqual([]);
  });

  itOfIoredis('survive the loss of the other connection', async () => {
    const backend = world.backend();
    const lock = world.request();
    const { wakes, ready } = subscribe(backend, lock.key);
    await ready;
    await backend.acquire(lock);
    for (const connection of await world.connections('normal')) await world.redis.client('KILL', 'ID', connection);
    await backend.release(lock);
    await until(() => wakes.count('message') === 1);
    expect(wakes.count('resync')).toBe(0);
  });

  it('are not affected by a listener that throws', async () => {
    const backend = world.backend();
    const key = world.key();
    backend.subscribe(key, 'reentrant', CLIENT, () => {
      throw new Error('a mistake of the listener');
    });
    const { wakes, ready } = subscribe(backend, key);
    await ready;
    await world.redis.publish(`redisson_lock__channel:{${key}}`, '0');
    await until(() => wakes.count('message') === 1);
    expect(String(world.errors[0])).toContain('a mistake of the listener');
  });

  it('may change while a message is delivered', async () => {
    const backend = world.backend();
    const key = world.key();
    let told = 0;
    const again = () => {
      told++;
      subscription.close();
      subscription = backend.subscribe(key, 'reentrant', CLIENT, again);
    };
    const other = subscribe(backend, key);
    let subscription = backend.subscribe(key, 'reentrant', CLIENT, again);
    await subscription.ready;
    await world.redis.publish(`redisson_lock__channel:{${key}}`, '0');
    await until(() => other.wakes.count('message') === 1 && told > 0);
    expect(told).toBe(1);
  });

  it('do not count themselves among the listeners of a release', async () => {
    const backend = world.backend();
    const lock = world.request();
    const { ready } = subscribe(backend, lock.key);
    const others = [world.backend(), world.backend()];
    await ready;
    for (const other of others) await subscribe(other, lock.key).ready;
    await backend.acquire(lock);
    expect(await backend.release(lock)).toMatchObject({ listeners: 2 });
  });

  it('that a user is not permitted are reported once, and do not affect others', async () => {
    await world.redis.acl(
      'SETUSER',
      'clerk',
      'on',
      '>secret',
      '~*',
      '+@all',
      'resetchannels',
      '&redisson_lock__channel:*',
    );
    const backend = world.backend({ connection: world.server.url.replace('//', '//clerk:secret@') });
    const forbidden = backend.subscribe('lock:x', 'read', CLIENT, () => {});
    const allowed = subscribe(backend, world.key());
    await allowed.ready;
    await until(() => world.errors.length > 0);
    expect(world.errors).toMatchObject([{ kind: 'denied' }]);
    forbidden.close();
  });
});

describe('a subscription over a half-open connection', () => {
  const world = new RedisWorld();

  it('is detected by a PING within the command timeout, and restored', async () => {
    const proxy = await startTcpProxy(world.server.port);
    const hurried: Runtime = {
      ...nodeRuntime,
      timer: (delay, callback, keepAlive) => nodeRuntime.timer(delay === 2_000 ? 50 : delay, callback, keepAlive),
    };
    const connection = world.server.client({ port: proxy.port });
    const backend = world.backend({ connection, commandTimeout: 300, runtime: hurried });
    const wakes = new WakeRecorder();
    await backend.subscribe('lock:x', 'reentrant', CLIENT, wakes.listen).ready;
    proxy.cutHalfOpen();
    await proxy.heal();
    await until(() => wakes.count('resync') === 1);
    await backend.close();
    await proxy.stop();
  });
});
