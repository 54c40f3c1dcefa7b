import { setTimeout as sleep } from 'node:timers/promises';
import { BackendError, type Wake } from '../../../lib/backends/lock-backend.js';
import {
  LockBusyError,
  LockConfigurationError,
  LockLostError,
  LockUnavailableError,
} from '../../../lib/engine/errors.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { leftovers, NOTHING, openVirtualWorld, openWorld, type VirtualProcess } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

describe('a lock that n may hold', () => {
  const world = openVirtualWorld();
  const three: LockOptions = { permits: 3 };

  const acquire = ({ locks }: VirtualProcess, count: number, options = three) =>
    Array.from({ length: count }, () => locks.acquire('export', options));
  const settled = async ({ runtime }: VirtualProcess, promises: readonly Promise<Lease>[]) => {
    const leases: Lease[] = [];
    for (const promise of promises) promise.then((lease) => leases.push(lease)).catch(() => {});
    await runtime.advance(50);
    return leases;
  };
  const holders = async ({ locks }: VirtualProcess) =>
    (await locks.inspect('export')).owners.map(({ owner }) => owner).sort();

  it('is held by n callers of one process, who ask together', async () => {
    const process = await world.process();
    const asked = acquire(process, 5);
    await process.runtime.settle();
    expect(process.backend.commands).toEqual(['acquire', 'acquire', 'acquire']);
    const leases = await settled(process, asked);
    expect(leases).toHaveLength(3);
    expect(await holders(process)).toEqual(leases.map(({ owner }) => owner).sort());
    expect(new Set(leases.map(({ fencingToken }) => fencingToken)).size).toBe(3);
    await leases[1].release();
    const next = await process.runtime.until(asked[3]);
    expect(next.held).toBe(true);
    await Promise.all([leases[0], leases[2], next].map((lease) => lease.release()));
    await (await asked[4]).release();
    await process.runtime.advance(2_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('is held by n callers of several processes', async () => {
    const processes = [await world.process(), await world.process()];
    const asked = processes.map((process) => acquire(process, 3));
    const leases = await Promise.all(processes.map((process, n) => settled(process, asked[n])));
    expect(leases.flat()).toHaveLength(3);
    for (const served of [3, 4, 5]) {
      const all = leases.flat().filter(({ held }) => held);
      expect(all).toHaveLength(3);
      await all[0].release();
      await processes[0].runtime.advance(50);
      const now = (await Promise.all(asked.flat().map((one) => Promise.race([one, undefined])))).filter(
        (lease) => lease?.held,
      ) as Lease[];
      expect(now).toHaveLength(3);
      leases.splice(0, 2, now);
      expect(served).toBeLessThan(6);
    }
    await Promise.all(leases.flat().map((lease) => lease.release()));
    await processes[0].runtime.advance(2_000);
    for (const process of processes) expect(leftovers(process)).toEqual(NOTHING);
  });

  it('hands a permit to the next caller of its process without a command, while others are held', async () => {
    const process = await world.process();
    await (await process.locks.acquire('another')).release();
    await process.runtime.advance(200); // until the clock of the tokens is no longer ahead
    const asked = acquire(process, 6);
    const leases = await settled(process, asked);
    const commands = process.backend.count();
    // A tenure begins with the acquisition, so the permits are given back within it.
    expect(leases).toHaveLength(3);
    const fresh = acquire(process, 0);
    expect(fresh).toEqual([]);
    await leases[0].release();
    const next = await process.runtime.until(asked[3]);
    expect(process.backend.count() - commands).toBeLessThanOrEqual(2);
    expect(next.held).toBe(true);
    await Promise.all([leases[1], leases[2], next].map((lease) => lease.release()));
    for (const last of asked.slice(4)) await (await process.runtime.until(last)).release();
  });

  it('gives each call the limit that it asks for', async () => {
    const process = await world.process();
    const one = await process.locks.acquire('export', { permits: 1 });
    expect(await process.locks.tryAcquire('export', { permits: 1 })).toBeNull();
    const two = await process.locks.tryAcquire('export', { permits: 2 });
    expect(two?.held).toBe(true);
    const narrow = process.locks.acquire('export', { permits: 1 });
    await one.release();
    await process.runtime.advance(100);
    expect(await holders(process)).toEqual([two?.owner]);
    await two?.release();
    await (await process.runtime.until(narrow)).release();
  });

  it('is not taken by a call with a smaller limit under the place of one with a larger limit', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const { runtime } = bob;
    const [one, two] = await runtime.until(Promise.all([1, 2].map(() => ann.locks.acquire('export', { permits: 2 }))));
    const leaves = new AbortController();
    const wide = errorOf(bob.locks.acquire('export', { permits: 2, signal: leaves.signal }));
    const narrow = bob.locks.acquire('export', { permits: 1 });
    await runtime.settle();
    leaves.abort();
    await wide;
    await one.release();
    await runtime.advance(100);
    expect(await holders(bob)).toEqual([two.owner]);
    await two.release();
    await (await runtime.until(narrow)).release();
  });

  it('is held by no more than n when callers leave together while a request under their place is under way', async () => {
    const [ann, bob, cid] = [await world.process(), await world.process(), await world.process()];
    const { runtime } = bob;
    const held = await runtime.until(Promise.all(acquire(ann, 3)));
    await runtime.advance(1_000);
    const abort = new AbortController();
    const leaving = [3, 3, 2].map((permits) => errorOf(bob.locks.acquire('export', { permits, signal: abort.signal })));
    const waiting = acquire(bob, 4);
    await runtime.settle();
    waiting.push(...acquire(cid, 1));
    await runtime.settle();
    const answer = latch();
    bob.backend.disturb(answerAfter(answer.promise), 'acquire');
    bob.backend.deliver = (wake, listener) => listener({ ...wake, grant: undefined } as Wake);
    await held[0].release(); // bob's first caller asks under its place, and gets the permit
    await runtime.settle();
    abort.abort();
    await Promise.all(leaving);
    bob.backend.heal();
    answer.open();
    const served = await settled(bob, waiting);
    expect(served).toHaveLength(1);
    expect(await holders(ann)).toEqual([held[1], held[2], served[0]].map(({ owner }) => owner).sort());
    await Promise.all(held.slice(1).map((lease) => lease.release()));
    for (const lease of waiting) await (await runtime.until(lease)).release();
  });

  it('takes no second permit for a re-entry, but one for a stranger', async () => {
    const { locks } = await world.process();
    await locks.withLock('export', { permits: 2 }, async (outer) => {
      await locks.withLock('export', { permits: 2 }, async (inner) => {
        expect(inner.owner).toBe(outer.owner);
        expect(currentLease()?.fencingToken).toBe(outer.fencingToken);
        expect((await locks.inspect('export')).owners).toHaveLength(1);
      });
      await locks.withLock('export', { permits: 2, reentry: false }, async (other) => {
        expect(other.owner).not.toBe(outer.owner);
        expect((await locks.inspect('export')).owners).toHaveLength(2);
      });
    });
  });

  it.each(['reentrant', 'fair', 'read', 'fenced'] as const)(
    'refuses a %s lock inside, which would wait',
    async (type) => {
      const { locks } = await world.process();
      const inside = locks.withLock('export', three, () => locks.withLock('export', { type }, () => 'never'));
      expect(await errorOf(inside)).toBeInstanceOf(LockConfigurationError);
      const outside = locks.withLock('export', { type }, () => locks.withLock('export', three, () => 'never'));
      expect(await errorOf(outside)).toBeInstanceOf(LockConfigurationError);
    },
  );

  it('is busy until the lease that ends first', async () => {
    const process = await world.process();
    const other = await world.process();
    const long = await process.locks.acquire('export', { permits: 2, leaseTime: '20s' });
    const short = await process.locks.acquire('export', { permits: 2, leaseTime: '5s' });
    for (const { locks } of [process, other]) {
      const busy = (await errorOf(
        process.runtime.until(locks.acquire('export', { permits: 2, waitTime: 10 })),
      )) as LockBusyError;
      expect(busy).toBeInstanceOf(LockBusyError);
      expect(busy.holder).toBe(short.owner);
      expect(busy.remainingTime).toBeGreaterThan(4_000);
      expect(busy.remainingTime).toBeLessThanOrEqual(5_000);
      expect(busy.fixedLease).toBe(locks === process.locks);
    }
    await long.release();
    await short.release();
  });

  it('goes to a waiter when the lease of a dead holder ends', async () => {
    const dead = await world.process();
    const process = await world.process();
    await Promise.all(acquire(dead, 3, { permits: 3, leaseTime: '4s' }));
    const asked = acquire(process, 2);
    expect(await settled(process, asked)).toHaveLength(0);
    await process.runtime.advance(4_100);
    for (const lease of asked) await (await process.runtime.until(lease, 1)).release();
  });

  it('is renewed for each holder, and loses only the one that was released by force', async () => {
    const process = await world.process();
    const leases = await Promise.all(acquire(process, 3));
    await process.runtime.advance(120_000);
    expect(leases.map(({ held }) => held)).toEqual([true, true, true]);
    const asked = process.locks.acquire('export', three);
    await process.locks.forceRelease('export', { owners: [leases[1].owner] });
    expect(leases.map(({ held }) => held)).toEqual([true, false, true]);
    expect(leases[1].signal.reason).toBeInstanceOf(LockLostError);
    const next = await process.runtime.until(asked);
    expect(await holders(process)).toEqual([leases[0], leases[2], next].map(({ owner }) => owner).sort());
    expect(await errorOf(leases[1].release())).toBeInstanceOf(LockLostError);
    await Promise.all([leases[0], leases[2], next].map((lease) => lease.release()));
  });

  it('extends the lease of one holder', async () => {
    const process = await world.process();
    const [one, two] = await Promise.all(acquire(process, 2, { permits: 2, leaseTime: '5s' }));
    await one.extend('60s');
    await process.runtime.advance(6_000);
    expect([one.held, two.held]).toEqual([true, false]);
    await one.release();
  });

  it('stays taken for holdAtLeast, without its body', async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    const lease = await locks.acquire('export', { permits: 1 });
    await locks.engine.holdWhile(lease as never, () => 'done', 3_000);
    expect(await locks.tryAcquire('export', { permits: 1 })).toBeNull();
    await runtime.advance(3_100);
    expect((await locks.tryAcquire('export', { permits: 1 }))?.held).toBe(true);
  });

  it('is released in the background, and goes to whoever arrives before that is sent', async () => {
    const { locks, backend, runtime } = await world.process();
    const calls = Array.from({ length: 4 }, () =>
      locks.withLock('export', { permits: 2, release: 'background' }, async () => {
        expect((await locks.inspect('export')).owners.length).toBeLessThanOrEqual(2);
      }),
    );
    await runtime.until(Promise.all(calls));
    await runtime.advance(2_000);
    expect((await locks.inspect('export')).owners).toEqual([]);
    expect(backend.count('release')).toBeLessThanOrEqual(4);
  });

  it('lets callers leave by waitTime, signal and outageTimeout, and leaves the line with the last one', async () => {
    const holder = await world.process();
    const process = await world.process();
    const { locks, runtime, backend } = process;
    const held = await Promise.all(acquire(holder, 3));
    expect(await errorOf(runtime.until(locks.acquire('export', { ...three, waitTime: '1s' })))).toBeInstanceOf(
      LockBusyError,
    );
    const controller = new AbortController();
    const aborted = errorOf(locks.acquire('export', { ...three, signal: controller.signal }));
    await runtime.advance(100);
    expect((await locks.inspect('export')).line).toHaveLength(1);
    controller.abort();
    expect((await aborted).name).toBe('LockAbortedError');
    await runtime.advance(100);
    expect((await locks.inspect('export')).line).toHaveLength(0);
    backend.disturb(refused, 'acquire');
    const unavailable = errorOf(locks.acquire('export', { ...three, outageTimeout: '2s' }));
    expect(await runtime.until(unavailable)).toBeInstanceOf(LockUnavailableError);
    backend.heal();
    await Promise.all(held.map((lease) => lease.release()));
    await runtime.advance(2_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('notices a grant that is heard of while a slow answer is awaited, and another caller asks beside it', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const { runtime } = bob;
    const two: LockOptions = { permits: 2 };
    const others = await settled(ann, acquire(ann, 2, two));
    // Bob has waited before, so that he listens when he enters the line. After two grants, two of his callers ask.
    const early = acquire(bob, 1, two)[0];
    await runtime.settle();
    await others[0].release();
    await (await runtime.until(early)).release();
    const held = await runtime.until(acquire(bob, 1, two)[0]);
    const answers = [latch(), latch()];
    let asked = 0;
    bob.backend.disturb(async (execute) => {
      const answer = answers[Math.min(asked++, 1)];
      const reply = await execute();
      await answer.promise;
      return reply;
    }, 'acquire');
    const first = acquire(bob, 1, two)[0];
    await runtime.settle();
    expect(asked).toBe(1);
    await held.release(); // grants the permit to bob's place
    const second = acquire(bob, 1, two)[0];
    await runtime.settle();
    expect(asked).toBe(2);
    bob.backend.heal();
    const start = runtime.monotonic();
    for (const answer of answers) {
      answer.open();
      await runtime.settle();
    }
    const lease = await runtime.until(first);
    expect(runtime.monotonic() - start).toBeLessThan(500);
    await lease.release();
    await (await runtime.until(second)).release();
    await others[1].release();
  });

  it('goes to one caller of a process whose place is granted it, although another one asked under that place', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const { runtime, backend } = bob;
    const two: LockOptions = { permits: 2 };
    const [other] = await settled(ann, acquire(ann, 1, two));
    const listens = latch();
    backend.delaySubscriptions(listens.promise);
    // Two ask side by side. One of them leaves, and its answer makes the next one wait for a message.
    const early = acquire(bob, 1, two)[0];
    const controller = new AbortController();
    const left = errorOf(bob.locks.acquire('export', { ...two, signal: controller.signal }));
    const [first] = acquire(bob, 1, two);
    controller.abort();
    const held = await runtime.until(early);
    // While the permit goes to the first caller, which fails, the second one asks beside it, and enters the line.
    const answer = latch();
    backend.disturb(async () => {
      await answer.promise;
      throw new BackendError('no answer', 'unavailable', 'unknown');
    }, 'transfer');
    backend.disturb(refused, 'release');
    const released = held.release();
    await runtime.settle();
    const [second] = acquire(bob, 1, two);
    listens.open();
    await runtime.settle();
    answer.open();
    await runtime.settle();
    await other.release(); // grants the permit to bob's place
    const lease = await runtime.until(first);
    expect(await settled(bob, [second])).toHaveLength(0);
    expect(await holders(bob)).toEqual([held.owner, lease.owner].sort());
    backend.heal();
    await lease.release();
    const next = await runtime.until(second);
    expect(next.owner).not.toBe(lease.owner);
    await next.release();
    await Promise.all([released, left]);
  });

  it('leaves the line while it holds permits and nobody waits', async () => {
    const other = await world.process();
    const process = await world.process();
    const { locks, runtime } = process;
    const theirs = await Promise.all(acquire(other, 2));
    const ours = await locks.acquire('export', three);
    const waiting = locks.acquire('export', { ...three, waitTime: '1s' });
    await runtime.advance(100);
    expect((await other.locks.inspect('export')).line.map(({ position }) => position)).toEqual([1]);
    expect(await errorOf(runtime.until(waiting))).toBeInstanceOf(LockBusyError);
    await runtime.advance(100);
    expect((await other.locks.inspect('export')).line).toEqual([]);
    await theirs[0].release();
    await runtime.advance(100);
    expect(await holders(process)).toEqual([theirs[1], ours].map(({ owner }) => owner).sort());
    await ours.release();
    await theirs[1].release();
  });

  it.each([
    [{ permits: 0 }, 'permits is 0; it must be a whole number from 1 to 1000'],
    [{ permits: 1_001 }, 'permits is 1001; it must be a whole number from 1 to 1000'],
    [{ permits: 1.5 }, 'permits is 1.5; it must be a whole number from 1 to 1000'],
    [{ permits: '3' as never }, "permits is '3'; it must be a whole number from 1 to 1000"],
    [{ permits: 3, type: 'fair' }, "permits and type: 'fair' exclude each other"],
  ] as [LockOptions, string][])('refuses %j', async (options, message) => {
    const { locks } = await world.process();
    const error = await errorOf(locks.acquire('export', options));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toContain(`acquire() of 'export': ${message}`);
  });

  it('refuses several names', async () => {
    const { locks } = await world.process();
    const error = await errorOf(locks.acquire(['a', 'b'], three));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toContain("acquire() of 'a', 'b': permits is for one name");
  });

  it('cannot be detached', async () => {
    const { locks } = await world.process();
    const lease = await locks.acquire('export', three);
    expect((await errorOf(lease.detach({ for: '1m' }))).message).toContain('several hold it');
    await lease.release();
  });
});

describe('many processes that share a lock which n may hold', () => {
  const world = openVirtualWorld();

  it.each(Array.from({ length: 30 }, (_, seed) => seed + 1))(
    'never hold it more than n times, serve every caller, and leave nothing behind (seed %i)',
    async (seed) => {
      world.renew(seed);
      const processes = await Promise.all([1, 2, 3, 4].map(() => world.process()));
      const { runtime } = processes[0];
      const permits = 1 + (seed % 4);
      let inside = 0;
      let most = 0;
      let served = 0;
      let refusedCalls = 0;
      const call = async ({ locks }: VirtualProcess): Promise<void> => {
        await new Promise<void>((resolve) => void runtime.timer(runtime.random() * 400, resolve));
        const chance = runtime.random();
        const options =
          chance < 0.2 ? { waitTime: 20 } : chance < 0.3 ? { waitTime: 0 } : chance < 0.5 ? { leaseTime: 5_000 } : {};
        try {
          await locks.withLock('export', { permits, ...options }, async () => {
            most = Math.max(most, ++inside);
            await new Promise<void>((resolve) => void runtime.timer(runtime.random() * 12, resolve));
            inside--;
          });
          served++;
        } catch (error) {
          expect(error).toBeInstanceOf(LockBusyError);
          refusedCalls++;
        }
      };
      const calls = processes.flatMap((process) => Array.from({ length: 30 }, () => call(process)));
      await runtime.until(Promise.all(calls), 60_000);
      expect(most).toBeLessThanOrEqual(permits);
      expect(most).toBe(permits);
      expect(served + refusedCalls).toBe(120);
      expect(served).toBeGreaterThan(60);
      await runtime.advance(10_000);
      expect((await processes[0].locks.inspect('export')).type).toBe('free');
      for (const process of processes) expect(leftovers(process)).toEqual(NOTHING);
    },
  );
});

describe('callers of one process that want one of n, behind one that wants the lock for itself', () => {
  const world = openWorld('Redis');

  it.each(['write', 'read'] as const)(
    'ask once in a while if there is no room for the one in front: type %s',
    async (type) => {
      const [holder, caller] = [await world.process(), await world.process()];
      const two = { permits: 2 };
      const [held, other] = [await holder.locks.acquire('export', two), await holder.locks.acquire('export', two)];
      const alone = caller.locks.acquire('export', { type });
      await sleep(100);
      const one = caller.locks.acquire('export', two);
      await sleep(100);
      const asked = caller.backend.count('acquire');
      await other.release();
      await sleep(300);
      const requests = caller.backend.count('acquire') - asked;
      await held.release();
      await Promise.all([alone, one].map(async (lease) => (await lease).release()));
      expect(requests).toBeLessThan(20);
    },
  );
});
