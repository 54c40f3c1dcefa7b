import { LockLostError } from '../../../lib/engine/errors.js';
import { HeldLock, type LockKeeper, type LockShare } from '../../../lib/engine/hold/held-lock.js';
import { isKept, leaveToLapse } from '../../../lib/engine/hold/hold-at-least.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { leftovers, ms, NOTHING, openVirtualWorld, openWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { until } from '../../support/until.js';
import { answerAfter, refused, type WatchedBackend } from '../../support/watched/watched-backend.js';

describe('a lock with holdAtLeast', () => {
  const world = openVirtualWorld();
  const options = { holdAtLeast: ms(5_000) };
  /** Without the reads of what is held when the process subscribes to forced releases. */
  const commandsOf = ({ commands }: WatchedBackend) => commands.filter((command) => command !== 'inspect');
  const sleep = (time: number) => new Promise<void>((resolve) => void world.runtime.timer(time, resolve));

  it('stays locked for the rest of the time when the body ends earlier, and is then free', async () => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    const other = await world.process();
    const result = runtime.until(
      locks.holdWhile(await locks.acquire('cron'), () => sleep(1_000).then(() => 42), options),
    );
    expect(await result).toBe(42);
    expect(runtime.monotonic()).toBe(1_000);
    expect(commandsOf(backend)).toEqual(['acquire', 'renew']);
    await runtime.advance(3_990);
    expect(await other.locks.tryAcquire('cron')).toBeNull();
    await runtime.advance(20);
    expect(await other.locks.tryAcquire('cron')).not.toBeNull();
    await runtime.advance(60_000);
    expect(backend.count('renew')).toBe(1);
  });

  it('is free then, although a late copy of its acquisition is executed', async () => {
    const { locks, backend, runtime } = await world.process();
    backend.disturb(async (execute) => {
      runtime.timer(3_000, () => void execute());
      return { ...(await execute()), validUntil: runtime.wall() + 4_000 };
    }, 'acquire');
    const lease = await locks.acquire('cron');
    backend.heal();
    await locks.holdWhile(lease, () => {}, options);
    await runtime.advance(4_990);
    expect(await locks.isLocked('cron')).toBe(true);
    await runtime.advance(1_000);
    expect(await locks.isLocked('cron')).toBe(false);
  });

  it('is not announced as released when it is kept, unlike others', async () => {
    const { locks } = await world.process();
    const released: string[] = [];
    locks.on('released', ({ name }) => released.push(name));
    await locks.holdWhile(await locks.acquire('cron'), () => 42, options);
    expect(released).toEqual([]);
    await locks.holdWhile(await locks.acquire('order'), () => 42);
    expect(released).toEqual(['order']);
  });

  it('leaves nothing in the process, and is not waited for at shutdown', async () => {
    const process = await world.process();
    await process.locks.holdWhile(await process.locks.acquire('cron'), () => 42, options);
    expect(leftovers(process)).toEqual(NOTHING);
    await world.runtime.until(process.locks.close());
    expect(world.runtime.monotonic()).toBe(0);
  });

  it('goes to a waiter of the same process when the time is over, not before and not much later', async () => {
    const { locks, runtime } = await world.process();
    const body = locks.holdWhile(await locks.acquire('cron'), () => sleep(1_000), options);
    const waiting = locks.acquire('cron');
    await runtime.until(body);
    const next = await runtime.until(waiting);
    expect(runtime.monotonic()).toBeGreaterThanOrEqual(5_000);
    expect(runtime.monotonic()).toBeLessThan(5_100);
    await next.release();
  });

  it.each([
    ['reentrant', 'reentrant'],
    ['fenced', 'fenced'],
    ['fair', 'fair'],
    ['fair', 'reentrant'],
    ['reentrant', 'fair'],
    ['write', 'write'],
    ['write', 'read'],
    ['read', 'write'],
  ] as const)(
    'as a %s lock, goes to another process that waits for it as a %s lock when the time is over',
    async (type, other) => {
      const { locks, runtime } = await world.process();
      const elsewhere = await world.process();
      const body = locks.holdWhile(await locks.acquire('cron', { type }), () => sleep(1_000), options);
      const waiting = elsewhere.locks.acquire('cron', { type: other });
      await runtime.until(body);
      const next = await runtime.until(waiting);
      expect(runtime.monotonic()).toBeGreaterThanOrEqual(5_000);
      expect(runtime.monotonic()).toBeLessThan(5_100);
      await next.release();
    },
  );

  it('is released as usual when the body takes longer', async () => {
    const { locks, backend, runtime } = await world.process();
    await runtime.until(locks.holdWhile(await locks.acquire('cron'), () => sleep(6_000), options));
    expect(commandsOf(backend)).toEqual(['acquire', 'release']);
  });

  it('is held for that time also when the body throws', async () => {
    const { locks } = await world.process();
    const failure = new Error('no paper');
    expect(await errorOf(locks.holdWhile(await locks.acquire('cron'), () => Promise.reject(failure), options))).toBe(
      failure,
    );
    expect(await locks.isLocked('cron')).toBe(true);
  });

  it('in re-entry, is kept for that time by the outer lease, whose watchdog renews it until its own end', async () => {
    const { locks, runtime, backend } = await world.process();
    const other = await world.process();
    await runtime.until(
      locks.withLock('cron', async (outer) => {
        await locks.holdWhile(await locks.acquire('cron'), () => 42, options);
        expect(outer.held).toBe(true);
        await sleep(1_000);
      }),
    );
    expect(commandsOf(backend)).toEqual(['acquire', 'renew']);
    await runtime.advance(3_990);
    expect(await other.locks.tryAcquire('cron')).toBeNull();
    await runtime.advance(20);
    expect(await other.locks.tryAcquire('cron')).not.toBeNull();
  });

  it('in re-entry, has no effect when the outer lease lasts longer', async () => {
    const { locks, runtime, backend } = await world.process();
    const body = locks.withLock('cron', async () => {
      await locks.holdWhile(await locks.acquire('cron'), () => 42, options);
      await sleep(5_001);
    });
    await runtime.until(body);
    expect(commandsOf(backend)).toEqual(['acquire', 'release']);
  });

  it('of several names, each is kept: those that are shared by the lease that shares them', async () => {
    const { locks, runtime } = await world.process();
    const [key, inner] = ['cron', 'cron:inner'];
    await runtime.until(
      locks.withLock([key, 'other'], async () => {
        await runtime.until(locks.holdWhile(await locks.engine.acquire([key, inner]), () => 42, options));
        expect(await locks.tryAcquire(inner)).toBeNull();
      }),
    );
    expect(await locks.isLocked('other')).toBe(false);
    expect([await locks.isLocked(key), await locks.isLocked(inner)]).toEqual([true, true]);
    await runtime.advance(5_010);
    expect([await locks.isLocked(key), await locks.isLocked(inner)]).toEqual([false, false]);
  });

  it('in re-entry, is not handed to a waiter of the same process before its time', async () => {
    const { locks, runtime } = await world.process();
    const body = locks.withLock('cron', async () => {
      await locks.holdWhile(await locks.acquire('cron'), () => 42, options);
    });
    const waiting = locks.acquire('cron');
    await runtime.until(body);
    const next = await runtime.until(waiting);
    expect(runtime.monotonic()).toBeGreaterThanOrEqual(5_000);
    expect(runtime.monotonic()).toBeLessThan(5_100);
    await next.release();
  });

  it('is free after that time also where its body has read inside of the write lock', async () => {
    const { locks, runtime } = await world.process();
    const other = await world.process();
    const lease = await locks.acquire('cron', { type: 'write' });
    await locks.holdWhile(lease, () => locks.withLock('cron', { type: 'read' }, async () => {}), options);
    await runtime.advance(4_990);
    expect(await other.locks.tryAcquire('cron', { type: 'write' })).toBeNull();
    await runtime.advance(20);
    expect(await other.locks.isLocked('cron')).toBe(false);
  });

  it('admits readers after that time, and writers after the reader inside of the write lock that outlives it', async () => {
    const { locks, runtime } = await world.process();
    const other = await world.process();
    let reading: Promise<void> | undefined;
    const body = async () => {
      reading = locks.withLock('page', { type: 'read' }, () => sleep(6_000));
      await sleep(100);
    };
    await runtime.until(locks.holdWhile(await locks.acquire('page', { type: 'write' }), body, options));
    await runtime.advance(5_000);
    const reader = await other.locks.tryAcquire('page', { type: 'read' });
    expect(reader).not.toBeNull();
    await reader?.release();
    expect(await other.locks.tryAcquire('page', { type: 'write' })).toBeNull();
    await runtime.until(reading as Promise<void>);
    expect(await other.locks.tryAcquire('page', { type: 'write' })).not.toBeNull();
  });

  it('is free then, although work that outlives its body waits for its confirmation', async () => {
    const { locks, backend, runtime } = await world.process();
    let leaked: Promise<Lease> | undefined;
    const body = async () => {
      runtime.suspend(5_000);
      backend.disturb(refused, 'renew');
      leaked = locks.acquire('cron');
      await runtime.settle();
      backend.heal();
    };
    await runtime.until(locks.holdWhile(await locks.acquire('cron'), body, options));
    const lease = await runtime.until(leaked as Promise<Lease>, 6_000);
    await lease.release();
    expect(await locks.isLocked('cron')).toBe(false);
  });

  it('reports its loss', async () => {
    const { locks, runtime } = await world.process({ watchdogTimeout: ms(300) });
    const other = await world.process();
    const body = errorOf(locks.holdWhile(await locks.acquire('cron'), () => sleep(1_000), options));
    await other.locks.forceRelease('cron');
    expect(await runtime.until(body)).toBeInstanceOf(LockLostError);
  });

  it('is held for its whole lease if that cannot be shortened, and a warning says so', async () => {
    const { locks, backend, runtime, logger } = await world.process();
    backend.disturb(refused, 'renew');
    expect(await locks.holdWhile(await locks.acquire('cron'), () => 42, options)).toBe(42);
    expect(logger.warnings).toEqual([expect.stringContaining('could not be shortened to 5000 ms')]);
    await runtime.advance(29_000);
    expect(await locks.isLocked('cron')).toBe(true);
    await runtime.advance(1_000);
    expect(await locks.isLocked('cron')).toBe(false);
  });

  it('reports that its lease had ended before the body had', async () => {
    const { locks, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: 400 });
    const done = locks.holdWhile(
      lease,
      async () => {
        runtime.suspend(2_000);
      },
      options,
    );
    expect(await errorOf(done)).toBeInstanceOf(LockLostError);
  });

  it('reports that somebody freed it just before the body had ended', async () => {
    const { locks, runtime } = await world.process();
    const other = await world.process();
    const lease = await locks.acquire('order');
    const done = locks.holdWhile(lease, async () => void (await other.locks.forceRelease('order')), options);
    expect(await errorOf(runtime.until(done))).toBeInstanceOf(LockLostError);
  });
});

describe('a lock that is left to lapse when it was kept long enough', () => {
  const world = openVirtualWorld();

  /** A lock that the backend has granted, to be kept for another 700.2 ms, and what its keeper hears. */
  const open = async (lateCopiesUntil?: number) => {
    const process = await world.process();
    const { runtime } = process;
    const { services } = process.locks.engine;
    const log: string[] = [];
    const keeper: LockKeeper = {
      name: 'order',
      key: services.keyOf('order'),
      giveBack: () => undefined,
      forget: () => void log.push('forgotten'),
      lost: () => {},
    };
    const owner = services.newOwner();
    const request = { key: keeper.key, type: 'reentrant', owner, leaseTime: 30_000, permits: undefined } as const;
    const reply = await services.backend.acquire({ ...request, reserve: 0, waiterTimeout: 0 });
    if (!reply.acquired) throw new Error('the lock is busy');
    const held = new HeldLock(keeper, { ...request, sent: services.clock.now(), lateCopiesUntil }, false, reply, 0);
    services.watchdog.guard(held, services.clock.now());
    held.keep(runtime.monotonic() + 700.2);
    return { ...process, services, held, log, leave: () => leaveToLapse(services, held, services.clock.now()) };
  };

  it('has to be kept until that moment, unless it is lost', async () => {
    const { held } = await open();
    const at = (monotonic: number) => isKept(held, { monotonic, wall: 0 });
    expect([at(0), at(700.1), at(700.2), at(701)]).toEqual([true, true, false, false]);
    held.lose(new LockLostError('gone', 'order'));
    expect(at(0)).toBe(false);
  });

  it('has a lease of that many whole milliseconds, and neither shares nor renewals', async () => {
    const { held, leave, log, backend, services, runtime } = await open();
    held.share({ terms: {}, lose: () => {}, requestEnd: () => {} } as unknown as LockShare);
    const requests: unknown[] = [];
    const answer = latch();
    backend.disturb((execute, request) => {
      requests.push(request);
      return answerAfter(answer.promise)(execute, request);
    }, 'renew');
    const left = leave();
    const { key, type, owner } = held;
    expect(requests).toEqual([{ key, type, owner, leaseTime: 701 }]);
    expect([held.shares, services.watchdog.guards(held), log]).toEqual([[], false, []]);
    answer.open();
    expect(await left).toBe('released');
    expect(log).toEqual(['forgotten']);
    await runtime.advance(1_000);
    expect(backend.count('release')).toBe(0);
  });

  it.each([
    [700, 'gone'],
    [701, 'released'],
  ] as const)(
    'is gone if it is not there %d ms later, before the new lease would have ended: %s',
    async (time, outcome) => {
      const { leave, backend, runtime, log } = await open();
      const answer = latch();
      backend.disturb(async () => {
        await answer.promise;
        return false;
      }, 'renew');
      const left = leave();
      runtime.block(time);
      answer.open();
      expect(await left).toBe(outcome);
      expect(log).toEqual(['forgotten']);
    },
  );

  it('is forgotten as well if its lease could not be shortened', async () => {
    const { leave, backend, log, logger } = await open();
    backend.disturb(refused, 'renew');
    expect(await leave()).toBe('released');
    expect(log).toEqual(['forgotten']);
    expect(logger.warnings).toEqual([
      expect.stringContaining("lease of the lock 'order' could not be shortened to 701"),
    ]);
  });

  it.each([
    ['a copy of its acquisition may be executed', 0, false],
    ['its owner reads', undefined, true],
  ])('is released after that time if %s, because it would last longer', async (_, lateCopiesUntil, reads) => {
    const { leave, held, backend, runtime } = await open(lateCopiesUntil);
    let abandoned = 0;
    if (reads) held.downgrade = { enqueue: () => {}, abandon: () => void abandoned++ };
    await leave();
    expect(abandoned).toBe(reads ? 1 : 0);
    await runtime.advance(700);
    expect(backend.count('release')).toBe(0);
    await runtime.advance(1);
    expect(backend.count('release')).toBe(1);
  });
});

describe('a lock on Redis with holdAtLeast', () => {
  const world = openWorld('Redis');

  it.each(['reentrant', 'fair', 'write', 'read'] as const)(
    'as a %s lock, goes to another process that waits for it long before its lease would have ended',
    async (type) => {
      const [{ locks }, elsewhere] = [await world.process(), await world.process()];
      const { backend } = elsewhere;
      let waiting: Promise<Lease> | undefined;
      const body = async () => {
        waiting = elsewhere.locks.acquire('cron', { type: type === 'read' ? 'write' : type, waitTime: 10_000 });
        // The second question follows when the waiter listens.
        await until(() => backend.count('acquire') >= 2 && backend.underWay === 0);
      };
      await locks.holdWhile(await locks.acquire('cron', { type }), body, { holdAtLeast: ms(300) });
      await (await waiting)?.release();
    },
  );
});

describe('a write lock on Redis with holdAtLeast whose body has read', () => {
  const world = openWorld('Redis');

  it('lapses after that time', async () => {
    const { locks } = await world.process();
    const lease = await locks.acquire('cron', { type: 'write' });
    const body = () => locks.withLock('cron', { type: 'read' }, async () => {});
    await locks.holdWhile(lease, body, { holdAtLeast: ms(5_000) });
    const [owner] = (await locks.inspect('cron')).owners;
    expect(owner.owner).toBe(lease.owner);
    expect(owner.remainingTime).toBeLessThanOrEqual(5_000);
  });
});
