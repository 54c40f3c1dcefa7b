import { Cluster } from 'ioredis';
import type { AcquireRequest } from '../../../lib/backends/lock-backend.js';
import { slotOf, tagOf } from '../../../lib/backends/redis/hash-slot.js';
import { RedisBackend, type RedisBackendOptions } from '../../../lib/backends/redis/redis-backend.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import { acrossBlockedLoop } from '../../support/client-under-test.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import { until } from '../../support/until.js';
import { CLIENT, succeeds, WakeRecorder } from './redis-world.js';

describe('a Redis cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  /** Redis 6 has no sharded pub/sub. */
  let isSharded: boolean;
  const errors: unknown[] = [];
  const backends: RedisBackend[] = [];
  let count = 0;

  beforeAll(async () => {
    cluster = await startCluster();
    client = cluster.client();
    const [spublish] = (await client.command('INFO', 'spublish')) as unknown[];
    isSharded = Boolean(spublish);
  });
  afterEach(async () => {
    await Promise.all(backends.splice(0).map((backend) => backend.close()));
  });
  afterAll(() => cluster?.stop());

  function open(options: Partial<RedisBackendOptions> = {}): RedisBackend {
    const backend = new RedisBackend({
      connection: { nodes: cluster.nodes },
      runtime: nodeRuntime,
      commandTimeout: 5_000,
      shardedPubSub: 'auto',
      minReplicas: 0,
      onError: (error) => errors.push(error),
      ...options,
    });
    backends.push(backend);
    return backend;
  }

  function request(key = `lock:${++count}`, more: Partial<AcquireRequest> = {}): AcquireRequest {
    const defaults = { leaseTime: 60_000, reserve: 0, waiterTimeout: 0, pastLine: true };
    return { key, owner: `${CLIENT}:${++count}`, type: 'reentrant', ...defaults, ...more };
  }

  it('maps keys to slots as slotOf does', async () => {
    for (const key of ['lock:a', '{a}b', 'a{b}c{d}', 'a{}b', '{', 'ünï{ö}', 'x}y{z}']) {
      expect(slotOf(key)).toBe(await cluster.slotOf(key));
    }
    for (const slot of [0, 1, 8_000, 16_383]) expect(slotOf(`clock:{${tagOf(slot)}}`)).toBe(slot);
  });

  it('keeps one clock for each slot in use', async () => {
    const backend = open();
    const locks = ['{a}1', '{a}2', '{a}3'].map((key) => request(key));
    const replies = await Promise.all(locks.map((lock) => backend.acquire(lock)));
    const tokens = replies.map((reply) => (reply.acquired ? reply.token : 0));
    expect(new Set(tokens).size).toBe(3);
    expect(await client.get(`nestjs_redis_lock_clock:{${tagOf(slotOf('{a}'))}}`)).toBe(String(Math.max(...tokens)));
  });

  it('counts answers that came while the event loop was blocked', async () => {
    const backend = open({ commandTimeout: 1_000 });
    const locks = Array.from({ length: 20 }, () => request());
    await Promise.all(locks.map((lock) => until(() => succeeds(backend.acquire(lock)))));
    const renew = () => Promise.all(locks.map((lock) => backend.renew(lock)));
    await renew(); // so that the servers know the script
    expect(await acrossBlockedLoop(renew(), 2_000)).not.toContain(false);
  });

  it.each(['auto', 'off'] as const)(
    'tells clients of forced releases, whichever slots the locks are in: sharded pub/sub %s',
    async (shardedPubSub) => {
      const holder = open({ shardedPubSub });
      const other = open({ shardedPubSub });
      const heard: unknown[] = [];
      await holder.listenToClient(CLIENT, (removal) => heard.push(removal)).ready;
      const locks = Array.from({ length: 12 }, () => request());
      for (const lock of locks) {
        await holder.acquire(lock);
        expect(await other.forceRelease(lock.key)).toEqual([lock.owner]);
      }
      await until(() => heard.length === locks.length);
      expect(heard).toEqual(expect.arrayContaining(locks.map(({ key, owner }) => ({ key, owners: [owner] }))));
    },
  );

  it('grants many locks of all slots at once, with cold script caches on every node', async () => {
    const backend = open();
    await Promise.all(client.nodes('master').map((node) => node.script('FLUSH')));
    const locks = Array.from({ length: 500 }, () => request());
    const replies = await Promise.all(locks.map((lock) => backend.acquire(lock)));
    expect(replies.every(({ acquired }) => acquired)).toBe(true);
    const renewals = await Promise.all(locks.map((lock) => backend.renew({ ...lock, leaseTime: 5_000 })));
    expect(renewals.every(Boolean)).toBe(true);
    await Promise.all(client.nodes('master').map((node) => node.script('FLUSH')));
    const releases = await Promise.all(locks.map((lock) => backend.release(lock)));
    expect(releases.every(({ released }) => released)).toBe(true);
  });

  it('runs no script on a replica, even if the client may read from replicas', async () => {
    const scaled = cluster.client({ scaleReads: 'slave' });
    const backend = open({ connection: scaled });
    for (let n = 0; n < 20; n++) {
      const lock = request();
      await backend.acquire(lock);
      expect((await backend.inspect(lock.key)).owners).toHaveLength(1);
      expect(await backend.release(lock)).toMatchObject({ released: true });
    }
  });

  it('acquires locks together only when they are in one slot', () => {
    const backend = open();
    expect(backend.canAcquireTogether(['lock:{a}1', 'lock:{a}2'])).toBe(true);
    expect(backend.canAcquireTogether(['lock:{a}1', 'lock:{b}1'])).toBe(false);
  });

  it.each(['auto', 'off'] as const)('wakes a waiter wherever its lock is, sharded: %s', async (shardedPubSub) => {
    const [waiting, holding] = [open({ shardedPubSub }), open({ shardedPubSub })];
    const locks = Array.from({ length: 12 }, () => request());
    const recorders = locks.map(() => new WakeRecorder());
    await Promise.all(
      locks.map((lock, n) => waiting.subscribe(lock.key, 'reentrant', CLIENT, recorders[n].listen).ready),
    );
    await Promise.all(locks.map((lock) => holding.acquire(lock)));
    const releases = await Promise.all(locks.map((lock) => holding.release(lock)));
    await until(() => recorders.every((wakes) => wakes.count('message') === 1));
    // Without sharded channels, a node counts only its own clients.
    const least = shardedPubSub === 'auto' && isSharded ? 1 : 0;
    for (const { listeners } of releases) expect(listeners).toBeGreaterThanOrEqual(least);
  });

  it('publishes as Redisson does: with SPUBLISH where the servers know it', async () => {
    const backend = open();
    const lock = request('lock:{sharded}');
    const master = await cluster.masterOf(slotOf(lock.key));
    const listener = master.client();
    const heard: string[] = [];
    listener.on(isSharded ? 'smessage' : 'message', (channel, message) => heard.push(`${channel} ${message}`));
    await listener[isSharded ? 'ssubscribe' : 'subscribe']('redisson_lock__channel:lock:{sharded}');
    await backend.acquire(lock);
    await backend.release(lock);
    await until(() => heard.length > 0);
    expect(heard).toEqual(['redisson_lock__channel:lock:{sharded} 0']);
  });

  it('asks again how to publish when no server answered the first time', async () => {
    const backend = open({ commandTimeout: 300 });
    const lock = request();
    // An acquisition publishes nothing, so the release is the first command that asks for the mode.
    await until(() => backend.acquire(lock).catch(() => false));
    for (const server of cluster.servers) server.pause();
    try {
      await expect(backend.release(lock)).rejects.toMatchObject({ kind: 'unavailable' });
    } finally {
      for (const server of cluster.servers) server.resume();
    }
    await until(() => backend.release(lock).catch(() => undefined));
    expect((await backend.inspect(lock.key)).owners).toEqual([]);
  });

  it('wakes the waiters of a fair lock one by one, without patterns', async () => {
    const backend = open();
    const wakes = new WakeRecorder();
    const holder = request('lock:{fair}', { type: 'fair' });
    await backend.acquire(holder);
    await backend.subscribe(holder.key, 'fair', CLIENT, wakes.listen).ready;
    const waiters = [1, 2].map(() => request(holder.key, { type: 'fair', waiterTimeout: 10_000 }));
    for (const waiter of waiters) await backend.acquire(waiter);
    let last = holder;
    for (const [n, waiter] of waiters.entries()) {
      await backend.release(last);
      await until(() => wakes.count('message') === n + 1);
      expect(wakes.all.at(-1)).toEqual({ kind: 'message', owner: waiter.owner });
      expect(await backend.acquire(waiter)).toMatchObject({ acquired: true });
      last = waiter;
    }
    await backend.release(last);
  });

  it('continues renewals and releases while their slot is moved key by key', async () => {
    // Without divisible calls, a cluster client would repeat the whole batch.
    const options = { retryDelayOnTryAgain: 60_000 };
    const backend = open({ connection: { nodes: cluster.nodes, options } });
    const locks = Array.from({ length: 8 }, (_, n) => request(`lock:{moving}${n}`));
    await Promise.all(locks.map((lock) => backend.acquire(lock)));
    const move = await cluster.beginMove(slotOf(locks[0].key));
    await move.migrate(...locks.slice(0, 4).map(({ key }) => key));
    const renewals = await Promise.all(locks.map((lock) => backend.renew(lock)));
    expect(renewals.every(Boolean)).toBe(true);
    const released = await Promise.all(locks.slice(2, 6).map((lock) => backend.release(lock)));
    expect(released.every(({ released }) => released)).toBe(true);
    await move.finish();
    expect(await backend.renew(locks[0])).toBe(true);
    const again = await Promise.all(locks.map((lock) => backend.acquire(lock)));
    expect(again.every(({ acquired }) => acquired)).toBe(true);
    await Promise.all(locks.map((lock) => backend.release(lock)));
  });

  it('makes waiters check again when their slot has moved, and wakes them from its new node', async () => {
    const backend = open();
    const lock = request('lock:{moved}');
    await backend.acquire(lock);
    const wakes = new WakeRecorder();
    await backend.subscribe(lock.key, 'reentrant', CLIENT, wakes.listen).ready;
    await cluster.moveSlot(slotOf(lock.key));
    // Messages that are not sharded reach all nodes.
    if (isSharded) await until(() => wakes.count('resync') > 0);
    await backend.release(lock);
    await until(() => wakes.count('message') > 0);
  });

  it('continues with the replica of a master that hangs', async () => {
    const backend = open({ commandTimeout: 2_000, minReplicas: 1 });
    const lock = request('lock:{failover}');
    await backend.acquire(lock);
    const wakes = new WakeRecorder();
    await backend.subscribe(lock.key, 'reentrant', CLIENT, wakes.listen).ready;
    const master = await cluster.masterOf(slotOf(lock.key));
    master.pause();
    try {
      await until(() => backend.renew(lock).catch(() => false), 20_000);
      if (isSharded) await until(() => wakes.count('resync') > 0, 20_000);
      // It was woken when the master stopped answering, and may not have subscribed again yet. It is woken once more
      // when it has. Without sharded channels, the waiter may or may not be subscribed at the master that hangs.
      const before = isSharded ? wakes.all.length : 0;
      expect(await backend.release(lock)).toMatchObject({ released: true });
      await until(() => wakes.all.length > before, 20_000);
    } finally {
      master.resume();
    }
  });
});
