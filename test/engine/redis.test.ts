import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockAbortedError, LockKeyError, LockLostError, LockUnavailableError } from '../../lib/engine/errors.js';
import { blockEventLoop } from '../support/block-event-loop.js';
import { freePort } from '../support/free-port.js';
import { type LockProcess, ms, nothingIsLeft, openWorld, type ProcessSettings } from '../support/lock-world.js';
import { startProcess } from '../support/processes/start-process.js';
import { errorOf, latch, Section } from '../support/section.js';
import { startTcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/until.js';

describe('a lock service on Redis', () => {
  const world = openWorld('Redis');
  const admin = () => world.redis.client();
  const keyOf = (name: string) => `${world.keyPrefix}${name}`;
  const channelOf = (name: string) => `redisson_lock__channel:{${keyOf(name)}}`;

  /** How often Redis was asked what, beside scripts' own commands. */
  const asked = async (work: () => Promise<unknown>): Promise<Record<string, number>> => {
    const client = admin();
    await client.config('RESETSTAT');
    await work();
    const counts: Record<string, number> = {};
    for (const [, command, calls] of (await client.info('commandstats')).matchAll(/cmdstat_([a-z|]+):calls=(\d+)/g)) {
      if (/^(evalsha|eval|subscribe|unsubscribe|script)/.test(command)) counts[command] = Number(calls);
    }
    return counts;
  };

  const asleep = ({ backend }: LockProcess) =>
    until(() => backend.subscriptions > 0 && backend.count('acquire') > backend.subscriptions);

  it('gives what came while the event loop was blocked, also after waitTime', async () => {
    const locks = await world.service();
    await locks.withLock('order', async () => {});
    const acquisition = locks.acquire('order', { waitTime: ms(100) });
    setImmediate(() => blockEventLoop(1_000));
    await (await acquisition).release();
  });

  describe('asks Redis', () => {
    /** One that has asked already what it asks once. */
    const warm = async (settings?: ProcessSettings) => {
      const { locks, backend } = await world.process(settings);
      await locks.withLock('first', async () => {});
      await until(() => backend.listensToClient);
      return locks;
    };

    it('once for an uncontended acquisition, and once for its release', async () => {
      const locks = await warm();
      await locks.withLock('order', async () => {});
      expect(await asked(() => locks.withLock('order', async () => {}))).toEqual({ evalsha: 2 });
      const lease = await locks.acquire('order');
      expect(await asked(() => lease.release())).toEqual({ evalsha: 1 });
    });

    it('once for several locks, and once for their release', async () => {
      const locks = await warm();
      const names = ['a', 'b', 'c'];
      await locks.withLock(names, async () => {});
      expect(await asked(() => locks.withLock(names, async () => {}))).toEqual({ evalsha: 2 });
    });

    it('a few times for what starts in one tick', async () => {
      const locks = await warm();
      await locks.withLock('order', async () => {});
      const names = Array.from({ length: 64 }, (_, i) => `order:${i}`);
      const { evalsha } = await asked(() => Promise.all(names.map((name) => locks.withLock(name, async () => {}))));
      expect(evalsha).toBeLessThanOrEqual(8);
    });

    it('a few times for a thousand callers of one lock', async () => {
      const locks = await warm();
      await locks.withLock('order', async () => {});
      const { evalsha } = await asked(() =>
        Promise.all(Array.from({ length: 1_000 }, () => locks.withLock('order', async () => {}))),
      );
      expect(evalsha).toBeLessThanOrEqual(40);
    });

    it('nothing while a thousand callers wait for a lock of another process', async () => {
      const [other, process] = await world.processes(2);
      const holder = await other.locks.acquire('order');
      await until(() => other.backend.listensToClient);
      const all = Array.from({ length: 1_000 }, () => process.locks.withLock('order', async () => {}));
      await asleep(process);
      expect(await asked(() => sleep(500))).toEqual({});
      await holder.release();
      await Promise.all(all);
      await nothingIsLeft(process);
    });

    it('a few times for the renewals of many locks', async () => {
      const locks = await warm({ watchdogTimeout: ms(900) });
      const leases = await Promise.all(Array.from({ length: 100 }, (_, i) => locks.acquire(`order:${i}`)));
      const { evalsha } = await asked(() => sleep(1_800));
      // Six rounds of about two commands.
      expect(evalsha).toBeLessThanOrEqual(30);
      expect(leases.every(({ held }) => held)).toBe(true);
      await Promise.all(leases.map((lease) => lease.release()));
    });
  });

  it('fails alone with the name under which something else stands', async () => {
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
    /** Callers that go on and on, in two processes, until `disturb` is through and for a while longer. */
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

    it('CLIENT KILL of its subscriber’s connection: a release meanwhile is not missed', async () => {
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

    it('the end of a restart in mid-wait, but for the time that it takes', async () => {
      const [other, process] = await world.processes(2, { commandTimeout: 500 });
      await other.locks.acquire('order');
      const section = new Section();
      const all = Array.from({ length: 50 }, (_, i) => process.locks.withLock('order', () => section.pass(String(i))));
      await asleep(process);
      await world.redis.restart();
      await Promise.all(all);
      expect(section.most).toBe(1);
      expect(section.entries).toEqual(Array.from({ length: 50 }, (_, i) => String(i)));
    }, 60_000);
  });

  describe('loses a lock, and says so by signal and release()', () => {
    it('when its key is deleted', async () => {
      const locks = await world.service({ watchdogTimeout: ms(300) });
      const lease = await locks.acquire('order');
      const { signal } = lease;
      await admin().del(keyOf('order'));
      await until(() => signal.aborted);
      expect(await errorOf(lease.release())).toBe(signal.reason);
      expect(signal.reason).toBeInstanceOf(LockLostError);
    });

    it('when its key is deleted right before the release', async () => {
      const locks = await world.service();
      const lease = await locks.acquire('order');
      await admin().del(keyOf('order'));
      expect(await errorOf(lease.release())).toBeInstanceOf(LockLostError);
    });

    it('when Redis stands still for longer than the lease', async () => {
      const process = await world.process({ watchdogTimeout: ms(1_000), commandTimeout: 300 });
      const lease = await process.locks.acquire('order');
      const { signal } = lease;
      world.redis.pause();
      const began = performance.now();
      try {
        await until(() => signal.aborted, 10_000);
        expect(performance.now() - began).toBeLessThan(5_000);
        expect(lease.held).toBe(false);
        expect(await errorOf(lease.release())).toBe(signal.reason);
      } finally {
        world.redis.resume();
      }
      const next = await process.locks.acquire('order', { waitTime: '20s' });
      expect(next.held).toBe(true);
      await next.release();
    });

    it('when the event loop is blocked for longer than the lease', async () => {
      const [locks, other] = await world.services(2, { watchdogTimeout: ms(200) });
      const error = await errorOf(
        locks.withLock('order', async ({ signal }) => {
          const end = performance.now() + 400;
          while (performance.now() < end);
          await until(() => signal.aborted);
        }),
      );
      expect(error).toBeInstanceOf(LockLostError);
      expect(await other.isLocked('order')).toBe(false);
    });

    it('but not when Redis is away for less than the lease', async () => {
      const locks = await world.service({ watchdogTimeout: ms(3_000), commandTimeout: 300 });
      const lease = await locks.acquire('order');
      world.redis.pause();
      await sleep(1_400); // a renewal falls due
      world.redis.resume();
      await sleep(1_800); // longer than the lease since it was acquired
      expect(lease.held).toBe(true);
      await lease.release();
    });
  });

  describe('answers in time', () => {
    const inTime = async (process: LockProcess) => {
      const { locks } = process;
      const began = performance.now();
      const abort = new AbortController();
      setTimeout(() => abort.abort(), 200);
      const answers = [
        locks.acquire('a', { waitTime: 200 }),
        locks.acquire('b', { waitTime: 400 }),
        locks.acquire('b', { waitTime: 300 }),
        locks.acquire(['c', 'd'], { waitTime: 300 }),
        locks.tryAcquire('e', { waitTime: 300 }),
        locks.withLock('f', { waitTime: 300 }, async () => {}),
      ].map(errorOf);
      const aborted = [
        locks.acquire('g', { signal: abort.signal }),
        locks.acquire(['h', 'i'], { signal: abort.signal }),
      ].map(errorOf);
      for (const error of await Promise.all(answers)) expect(error).toBeInstanceOf(LockUnavailableError);
      for (const error of await Promise.all(aborted)) expect(error).toBeInstanceOf(LockAbortedError);
      expect(performance.now() - began).toBeLessThan(1_900); // the command time-out is two seconds
    };

    it('while the server stands still, and gives back what reached it', async () => {
      const process = await world.process();
      await process.locks.withLock('a', async () => {});
      world.redis.pause();
      try {
        await inTime(process);
        const once = process.locks.acquire('j', { waitTime: 0 });
        expect(await errorOf(once)).toBeInstanceOf(LockUnavailableError);
      } finally {
        world.redis.resume();
      }
      const client = admin();
      const held = async () => (await client.keys(`${world.keyPrefix}*`)).length;
      await until(async () => (await held()) === 0);
      await sleep(300);
      expect(await held()).toBe(0);
      await process.locks.withLock(['a', 'b', 'j'], async () => {});
    });

    it('when nobody listens on the port', async () => {
      const process = await world.process({ connection: `redis://127.0.0.1:${await freePort()}` });
      await inTime(process);
      expect(await errorOf(process.locks.acquire('j', { waitTime: 0 }))).toBeInstanceOf(LockUnavailableError);
      const began = performance.now();
      await process.locks.close();
      expect(performance.now() - began).toBeLessThan(5_000);
    });

    it('when answers get lost, and gives back what was acquired', async () => {
      const proxy = await startTcpProxy(world.redis.port);
      try {
        const process = await world.process({ connection: proxy.url, commandTimeout: 500 });
        await process.locks.withLock('a', async () => {});
        proxy.dropReplies();
        expect(await errorOf(process.locks.acquire('b', { waitTime: 300 }))).toBeInstanceOf(LockUnavailableError);
        const client = admin();
        await until(async () => (await client.exists(keyOf('b'))) === 1).catch(() => {});
        await proxy.heal();
        await until(async () => (await client.exists(keyOf('b'))) === 0);
        const lease = await process.locks.acquire('b', { waitTime: '10s' });
        await lease.release();
      } finally {
        await proxy.stop();
      }
    });
  });

  it('has a lock once when the answer to its acquisition got lost with the connection', async () => {
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

  it('renews in time, whatever else it has to send', async () => {
    const locks = await world.service({ watchdogTimeout: ms(500) });
    const lease = await locks.acquire('steady');
    const { signal } = lease;
    const end = performance.now() + 1_200;
    let round = 0;
    while (performance.now() < end) {
      round++;
      await Promise.all(
        Array.from({ length: 500 }, (_, i) =>
          locks.withLock(`order:${round}:${i}`, { leaseTime: '10s' }, async () => {}),
        ),
      );
    }
    expect(signal.aborted).toBe(false);
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('frees within a lease what a process held that was killed', async () => {
    const locks = await world.service();
    const { child, line } = await startProcess('lock-holder.ts', world.redis.url, world.keyPrefix, 'order', '1000');
    await sleep(1_300); // it renews
    expect((await locks.inspect('order')).owners.map(({ owner }) => owner)).toEqual([line]);
    const waiting = locks.acquire('order', { waitTime: '20s' });
    child.kill('SIGKILL');
    await once(child, 'exit');
    const began = performance.now();
    const lease = await waiting;
    expect(performance.now() - began).toBeLessThan(1_000 + 1_000); // a lease, and what a slow machine adds
    await lease.release();
  }, 60_000);

  it('hears the releases of others also after some of its own, although it may not publish itself', async () => {
    await admin().call('ACL', 'SETUSER', 'mute', 'on', '>word', 'allkeys', 'allchannels', '+@all', '-publish');
    const mute = await world.process({ connection: world.redis.url.replace('//', '//mute:word@') });
    const other = await world.process();
    const theirs = await other.locks.acquire('order');
    const waiting = mute.locks.acquire('order');
    await until(async () => Number((await admin().pubsub('NUMSUB', channelOf('order')))[1]) > 0);
    await theirs.release();
    const first = await waiting;
    const second = mute.locks.acquire('order');
    await sleep(50); // so that it is not handed on in the process
    const taken = latch();
    mute.backend.disturb(async (execute) => {
      await taken.promise;
      return execute();
    }, 'acquire');
    await first.release();
    const theirsAgain = await other.locks.acquire('order');
    taken.open();
    await until(() => mute.backend.count('acquire') > 1);
    await sleep(100); // it has seen that the lock is busy
    await theirsAgain.release();
    const granted = await Promise.race([second, sleep(9_000, undefined, { ref: false })]);
    expect(granted?.held).toBe(true);
    await granted?.release();
  }, 30_000);
});
