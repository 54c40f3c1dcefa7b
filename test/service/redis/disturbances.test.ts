import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockKeyError } from '../../../lib/engine/errors.js';
import { acrossBlockedLoop } from '../../support/client-under-test.js';
import { type LockProcess, ms, openWorld } from '../../support/lock-world.js';
import { startTcpProxy } from '../../support/network/tcp-proxy.js';
import { startProcess } from '../../support/processes/start-process.js';
import { latch, Section } from '../../support/section.js';
import { until } from '../../support/until.js';

describe('a lock service on Redis', () => {
  const world = openWorld('Redis');
  const admin = () => world.redis.client();
  const keyOf = (name: string) => `${world.keyPrefix}${name}`;
  const turnsOf = (name: string) => `nestjs_redis_lock_turn:{${keyOf(name)}}:*`;

  const asleep = ({ backend }: LockProcess) =>
    until(() => backend.subscriptions > 0 && backend.count('acquire') > backend.subscriptions);

  it('gives a lock whose answer came while the event loop was blocked, also after waitTime', async () => {
    const locks = await world.service();
    await locks.withLock('order', async () => {});
    const lease = await acrossBlockedLoop(locks.acquire('order', { waitTime: ms(100) }), 1_000);
    await lease.release();
  });

  it('fails only for the name whose key holds something else', async () => {
    const locks = await world.service();
    await admin().set(keyOf('order:7'), 'not a lock');
    const results = await Promise.allSettled(Array.from({ length: 64 }, (_, i) => locks.acquire(`order:${i}`)));
    for (const [i, result] of results.entries()) expect(result.status).toBe(i === 7 ? 'rejected' : 'fulfilled');
    const { reason } = results[7] as PromiseRejectedResult;
    expect(reason).toBeInstanceOf(LockKeyError);
    expect(reason.lockName).toBe('order:7');
    for (const result of results) if (result.status === 'fulfilled') await result.value.release();
    expect(await admin().get(keyOf('order:7'))).toBe('not a lock');
  });

  describe('does not notice', () => {
    /** Callers in two processes that lock again and again until `disturb` has ended, and for a while longer. */
    const traffic = async (disturb: (processes: LockProcess[]) => Promise<unknown>) => {
      const processes = await world.processes(2);
      const section = new Section();
      let over = false;
      let rounds = 0;
      const callers = processes.flatMap(({ locks }) =>
        Array.from({ length: 5 }, async () => {
          while (!over) {
            await locks.withLock('order', () => section.pass('', 1));
            rounds++;
          }
        }),
      );
      const steady = await processes[0].locks.acquire('steady');
      await until(() => rounds > 10);
      await disturb(processes);
      const before = rounds;
      await until(() => rounds > before + 20);
      over = true;
      await Promise.all(callers);
      expect(section.most).toBe(1);
      expect(steady.held).toBe(true);
      await steady.release();
    };

    it('SCRIPT FLUSH', () => traffic(() => admin().script('FLUSH')));

    it('CLIENT KILL of its connections', () =>
      traffic(async () => {
        const client = admin();
        await client.ping();
        for (let i = 0; i < 3; i++) {
          await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
          await sleep(20);
        }
      }));

    it('CLIENT KILL of its subscriber connection: a release meanwhile is not missed', async () => {
      const [other, process] = await world.processes(2);
      const holder = await other.locks.acquire('order');
      const waiting = process.locks.acquire('order', { waitTime: '25s' });
      await asleep(process);
      const client = admin();
      await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await holder.release();
      const lease = await waiting;
      await lease.release();
    });

    it('a restart during a wait, apart from the time that it takes', async () => {
      const [other, process] = await world.processes(2, { commandTimeout: 500 });
      await other.locks.acquire('order');
      const section = new Section();
      const all = Array.from({ length: 50 }, (_, i) => process.locks.withLock('order', () => section.pass(String(i))));
      await asleep(process);
      await world.redis.restart();
      await Promise.all(all);
      expect(section.most).toBe(1);
      expect(section.entries).toEqual(Array.from({ length: 50 }, (_, i) => String(i)));
    });
  });

  it('holds a lock once when the answer to its acquisition was lost with the connection', async () => {
    const proxy = await startTcpProxy(world.redis.port);
    try {
      const process = await world.process({ connection: proxy.url });
      await process.locks.withLock('a', async () => {});
      proxy.dropReplies({ close: true });
      const waiting = process.locks.acquire('b', { waitTime: '20s' });
      await until(() => proxy.droppedReplies > 0);
      await proxy.heal();
      const lease = await waiting;
      expect(lease.held).toBe(true);
      expect(Object.keys(await admin().hgetall(keyOf('b')))).toEqual([lease.owner]);
      await lease.release();
      expect(await admin().exists(keyOf('b'))).toBe(0);
    } finally {
      await proxy.stop();
    }
  });

  it('receives the releases of others after its own, although it is not allowed to publish', async () => {
    await admin().call('ACL', 'SETUSER', 'mute', 'on', '>word', 'allkeys', 'allchannels', '+@all', '-publish');
    const mute = await world.process({ connection: world.redis.url.replace('//', '//mute:word@') });
    const other = await world.process();
    const theirs = await other.locks.acquire('order');
    const waiting = mute.locks.acquire('order');
    await until(async () => (await admin().pubsub('CHANNELS', turnsOf('order'))).length > 0);
    await theirs.release();
    const first = await waiting;
    const second = mute.locks.acquire('order');
    await sleep(50); // so that it is not handed off within the process
    const taken = latch();
    mute.backend.disturb(async (execute) => {
      await taken.promise;
      return execute();
    }, 'acquire');
    await first.release();
    const theirsAgain = await other.locks.acquire('order');
    taken.open();
    await until(() => mute.backend.count('acquire') > 1);
    await sleep(100); // it has found the lock busy
    await theirsAgain.release();
    const granted = await Promise.race([second, sleep(9_000, undefined, { ref: false })]);
    expect(granted?.held).toBe(true);
    await granted?.release();
  });

  it('frees what a killed process held within one lease', async () => {
    const locks = await world.service();
    const lease = 4_000; // long enough for a holder that a busy machine delays
    const holder = [world.redis.url, world.keyPrefix, 'order', String(lease)];
    const { child, line } = await startProcess('lock-holder.ts', ...holder);
    const remaining = async () => (await locks.inspect('order')).owners[0]?.remainingTime ?? 0;
    const before = await remaining();
    await until(async () => (await remaining()) < before - lease / 6);
    await until(async () => (await remaining()) > before - lease / 6); // it renews
    expect((await locks.inspect('order')).owners.map(({ owner }) => owner)).toEqual([line]);
    const waiting = locks.acquire('order', { waitTime: '20s' });
    child.kill('SIGKILL');
    await once(child, 'exit');
    const began = performance.now();
    const freed = await waiting;
    expect(performance.now() - began).toBeLessThan(lease + 2_000); // a lease, and what a slow machine adds
    await freed.release();
  });
});
