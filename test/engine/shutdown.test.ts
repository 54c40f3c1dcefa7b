import { LockAbortedError, LockUnavailableError } from '../../lib/engine/errors.js';
import { Shutdown } from '../../lib/engine/shutdown.js';
import type { Lease } from '../../lib/engine/terms/lease.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { leftovers, ms, NOTHING, nothingIsLeft, openVirtualWorld, openWorld, STORES } from '../support/lock-world.js';
import { errorOf, latch, Section } from '../support/section.js';
import { answerAfter, type Disturbance, refused } from '../support/watched/watched-backend.js';

describe('shutdown', () => {
  const world = openVirtualWorld();
  const settings = { shutdownTimeout: ms(10_000) };

  it('is over at once when nothing is held', async () => {
    const { locks, runtime } = await world.process(settings);
    await locks.withLock('order', async () => {});
    await runtime.until(locks.close());
    expect(runtime.monotonic()).toBe(0);
    await locks.close();
  });

  it('lets running bodies end, and release what they hold', async () => {
    const { locks, runtime } = await world.process(settings);
    const other = await world.process();
    const end = latch();
    const body = locks.withLock('order', async ({ signal }) => {
      await end.promise;
      expect(signal.aborted).toBe(false);
      return 'sold';
    });
    await runtime.settle();
    const closed = locks.close();
    let over = false;
    void closed.then(() => {
      over = true;
    });
    await runtime.advance(5_000);
    expect(over).toBe(false);
    end.open();
    expect(await body).toBe('sold');
    await runtime.settle();
    expect(over).toBe(true);
    expect(await other.locks.isLocked('order')).toBe(false);
  });

  it('rejects a body that acquires again what was lost while the event loop was blocked', async () => {
    const { locks, runtime } = await world.process(settings);
    const other = await world.process();
    const inner = locks.withLock('order', { leaseTime: '1s', onLost: 'warn' }, async () => {
      runtime.block(2_000);
      const theirs = other.locks.acquire('order');
      return errorOf(locks.acquire('order')).finally(() => theirs.then((lease) => lease.release()));
    });
    const refused = errorOf(inner.then((error) => Promise.reject(error)));
    await runtime.settle();
    void locks.close();
    await runtime.advance(11_000);
    expect(await refused).toBeInstanceOf(LockAbortedError);
  });

  it('continues to renew while bodies end', async () => {
    const { locks, runtime } = await world.process({ shutdownTimeout: ms(100_000), watchdogTimeout: ms(3_000) });
    const end = latch();
    const body = locks.withLock('order', async (lease) => {
      await end.promise;
      expect(lease.held).toBe(true);
    });
    await runtime.settle();
    const closed = locks.close();
    await runtime.advance(20_000);
    end.open();
    await body;
    await runtime.until(closed);
  });

  it('begins with a clock, and grants locks as ever', async () => {
    const { locks, runtime } = await world.process(settings);
    const other = await world.process();
    const theirs = await other.locks.acquire('busy');
    locks.beginShutdown();
    const waiting = locks.acquire('busy');
    await (await locks.acquire('order')).release();
    await runtime.advance(9_000);
    await theirs.release();
    await (await runtime.until(waiting)).release();
    await (await locks.acquire('order')).release();
    await runtime.until(locks.close());
    expect(runtime.monotonic()).toBe(9_000);
  });

  it('admits those who come while it waits, until nothing is left, and nobody after that', async () => {
    const { locks, runtime } = await world.process(settings);
    const end = latch();
    const log: string[] = [];
    const body = locks
      .withLock('order', () => end.promise)
      .then(async () => {
        for (const name of ['mail', 'stock']) await locks.withLock(name, async () => void log.push(name));
        await locks.withLock(['a', 'b'], async () => void log.push('a, b'));
      });
    await runtime.settle();
    const drained = locks.drain();
    await runtime.advance(100);
    const late = locks.withLock('late', async () => void log.push('late'));
    await runtime.until(late);
    end.open();
    await runtime.until(Promise.all([body, drained]));
    expect(log).toEqual(['late', 'mail', 'stock', 'a, b']);
    expect(runtime.monotonic()).toBe(100);
    for (const refused of [
      locks.acquire('a'),
      locks.tryAcquire('a'),
      locks.acquire(['a', 'b']),
      locks.getLock('a').lock(),
    ])
      expect(await errorOf(refused)).toMatchObject({ name: 'LockAbortedError', byShutdown: true });
  });

  it.each([
    ['a lock', 'order', {}],
    ['several locks', ['order', 'stock'], {}],
    ['the newest call of a lock', 'order', { newest: true }],
    ['a fair lock', 'order', { type: 'fair' }],
  ] as const)('serves those who wait for %s behind a body of this process', async (_, names, options) => {
    const { locks, runtime } = await world.process(settings);
    const end = latch();
    let isServed = false;
    const body = locks.withLock('order', () => end.promise);
    await runtime.settle();
    const waiting = locks.withLock(names, options, async () => {
      isServed = true;
    });
    await runtime.advance(100);
    const drained = locks.drain();
    await runtime.advance(5_000);
    end.open();
    await runtime.until(Promise.all([body, waiting, drained]));
    expect(isServed).toBe(true);
  });

  it('shares the result of a flight with those who wait for it', async () => {
    const { locks, runtime } = await world.process(settings);
    const end = latch();
    let runs = 0;
    const fly = () =>
      locks.singleFlight('rates', async () => {
        runs++;
        await end.promise;
        return 'done';
      });
    const flights = [fly(), fly()];
    await runtime.settle();
    const drained = locks.drain();
    await runtime.advance(1_000);
    flights.push(fly());
    await runtime.settle();
    end.open();
    expect(await runtime.until(Promise.all(flights))).toEqual(['done', 'done', 'done']);
    await runtime.until(drained);
    expect(runs).toBe(1);
  });

  it('serves those who wait for a permit that a body of this process holds', async () => {
    const { locks, runtime } = await world.process(settings);
    await runtime.until(locks.getSemaphore('mail').trySetPermits(1));
    const end = latch();
    const body = locks.getSemaphore('mail').withPermit(() => end.promise);
    await runtime.settle();
    const waiting = locks.getSemaphore('mail').withPermit(async () => 'sent');
    await runtime.settle();
    const drained = locks.drain();
    await runtime.advance(1_000);
    end.open();
    expect(await runtime.until(waiting)).toBe('sent');
    await runtime.until(Promise.all([body, drained]));
  });

  it('refuses those who wait for another process, also if they come later or were behind a body here', async () => {
    const process = await world.process(settings);
    const { locks, runtime } = process;
    const other = await world.process();
    const theirs = [await other.locks.acquire('a'), await other.locks.acquire('f', { type: 'fair' })];
    await runtime.until(other.locks.getSemaphore('mail').trySetPermits(0));
    void other.locks.singleFlight('rates', () => new Promise<string>(() => {})).catch(() => {});
    const end = latch();
    const body = locks.withLock('b', () => end.promise);
    const handed = errorOf(locks.acquire(['b', 'a']));
    const waiters = [
      locks.acquire('a'),
      locks.acquire('a', { waitTime: '1h' }),
      locks.acquire('a', { newest: true }),
      locks.acquire(['a', 'c']),
      locks.acquire('f', { type: 'fair' }),
      locks.getSemaphore('mail').acquire(),
      locks.singleFlight('rates', async () => 'done'),
    ].map(errorOf);
    await runtime.advance(100);
    const drained = locks.drain();
    for (const waiter of waiters) expect(await runtime.until(waiter)).toMatchObject({ byShutdown: true });
    expect(await runtime.until(errorOf(locks.acquire('a')))).toMatchObject({ byShutdown: true });
    expect(runtime.monotonic()).toBe(100);
    end.open();
    expect(await runtime.until(handed)).toMatchObject({ byShutdown: true, lockName: 'a, b' });
    await runtime.until(Promise.all([body, drained]));
    expect(runtime.monotonic()).toBeLessThan(200);
    for (const lease of theirs) await lease.release();
    await runtime.advance(1_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('lets the newest call wait that has superseded others, here or in another process', async () => {
    const [one, two] = [await world.process(settings), await world.process(settings)];
    const { runtime } = one;
    const other = await world.process();
    const busy = await other.locks.acquire('index');
    const call = ({ locks }: typeof one) => locks.withLock('index', { newest: true }, async () => 'indexed');
    const superseded = [call(one), call(one)].map(errorOf);
    await runtime.settle();
    const newest = call(two);
    await runtime.settle();
    for (const error of superseded) expect(await error).toMatchObject({ name: 'LockSupersededError' });
    const drained = [one.locks.drain(), two.locks.drain()];
    await runtime.until(drained[0]);
    await runtime.advance(3_000);
    await busy.release();
    expect(await runtime.until(newest)).toBe('indexed');
    await runtime.until(drained[1]);
  });

  describe('before other modules close what bodies use', () => {
    const begun = async () => {
      const process = await world.process(settings);
      const settled = { over: false };
      const settle = () =>
        process.locks.settle().then(() => {
          settled.over = true;
        });
      return { ...process, settled, settle, other: await world.process() };
    };

    it.each<[string, (locks: LockService, body: () => Promise<void>) => Promise<unknown>]>([
      ['a body', (locks, body) => locks.withLock('order', body)],
      ['a body of several locks', (locks, body) => locks.withLock(['order', 'stock'], body)],
      ['a body with permits', (locks, body) => locks.getSemaphore('mail').withPermit(body)],
      ['the body of a flight', (locks, body) => locks.singleFlight('rates', body)],
      [
        'a body that has released its lock',
        (locks, body) => locks.withLock('order', (lease) => lease.release().then(body)),
      ],
      [
        'a body that waits behind another one',
        (locks, body) => {
          void locks.withLock('order', body);
          return locks.withLock('order', async () => {});
        },
      ],
      [
        'a leader, until it has cleaned up',
        async (locks, body) => {
          const leadership = locks.lead('relay', { onElected: async () => {}, onRevoked: body });
          await world.runtime.settle();
          void leadership.stop();
        },
      ],
      [
        'who acquires',
        async (locks, body) => {
          const lease = await locks.acquire('order');
          await body();
          await lease.release();
        },
      ],
    ])('waits for %s', async (_, call) => {
      const { locks, runtime, settled, settle } = await begun();
      await runtime.until(locks.getSemaphore('mail').trySetPermits(1));
      const end = latch();
      const called = call(locks, () => end.promise);
      await runtime.advance(100);
      const settling = settle();
      await runtime.advance(5_000);
      expect(settled.over).toBe(false);
      end.open();
      await runtime.until(Promise.all([called, settling]));
    });

    it('does not wait for what begins meanwhile, which gets its locks', async () => {
      const { locks, runtime, settle } = await begun();
      await runtime.until(locks.getSemaphore('mail').trySetPermits(1));
      const [end, later] = [latch(), latch()];
      const body = locks.withLock('order', () => end.promise);
      await runtime.settle();
      const settled = settle();
      await runtime.settle();
      const after = [
        locks.withLock('job', () => later.promise),
        locks.withLock('job', async () => {}),
        locks.getSemaphore('mail').withPermit(() => later.promise),
      ];
      await runtime.settle();
      end.open();
      await runtime.until(Promise.all([body, settled]));
      expect(runtime.monotonic()).toBe(0);
      later.open();
      await runtime.until(Promise.all(after));
    });

    it('neither waits for callers behind another process nor refuses them', async () => {
      const { locks, runtime, settle, other } = await begun();
      const busy = await other.locks.acquire('order');
      const waiting = locks.withLock('order', async () => 'paid');
      await runtime.advance(100);
      await runtime.until(settle());
      expect(runtime.monotonic()).toBe(100);
      await busy.release();
      expect(await runtime.until(waiting)).toBe('paid');
    });

    it('waits for the newest call that has superseded others', async () => {
      const { locks, runtime, settled, settle, other } = await begun();
      const busy = await other.locks.acquire('index');
      const calls = ['1', '2'].map((call) => locks.withLock('index', { newest: true }, async () => call));
      expect(await errorOf(calls[0])).toMatchObject({ name: 'LockSupersededError' });
      const settling = settle();
      await runtime.advance(3_000);
      expect(settled.over).toBe(false);
      await busy.release();
      await runtime.until(settling);
      expect(await calls[1]).toBe('2');
    });

    it('waits until the clock of the shutdown ends', async () => {
      const { locks, runtime, settle } = await begun();
      void locks.withLock('order', () => new Promise<void>(() => {}));
      await runtime.settle();
      await runtime.until(settle());
      expect(runtime.monotonic()).toBe(10_000);
    });

    it('does not wait for the body that closes the application, or those behind it', async () => {
      const { locks, runtime, settle } = await begun();
      const begins = latch();
      const body = locks.withLock('admin', async () => {
        await begins.promise;
        await settle();
      });
      const behind = locks.withLock('admin', async () => 'next');
      await runtime.settle();
      begins.open();
      await runtime.until(body);
      expect(await runtime.until(behind)).toBe('next');
      expect(runtime.monotonic()).toBe(0);
    });
  });

  it('names the lock in each rejection', async () => {
    const { locks } = await world.process(settings);
    const other = await world.process();
    await other.locks.acquire(['order', 'stock']);
    await other.locks.acquire('queue', { type: 'fair' });
    await other.locks.getCountDownLatch('done').trySetCount(1);
    const waiting = [
      errorOf(locks.acquire('order')),
      errorOf(locks.acquire('queue', { type: 'fair' })),
      errorOf(locks.acquire(['order', 'stock'])),
      errorOf(locks.getCountDownLatch('done').await()),
    ];
    await world.runtime.settle();
    await world.runtime.until(locks.close());
    const late = [errorOf(locks.acquire('order')), errorOf(locks.acquire(['order', 'stock']))];
    const errors = (await Promise.all([...waiting, ...late])) as LockAbortedError[];
    expect(errors.map(({ name }) => name)).toEqual(errors.map(() => 'LockAbortedError'));
    expect(errors.map(({ lockName }) => lockName)).toEqual([
      'order',
      'queue',
      'order, stock',
      'done',
      'order',
      'order, stock',
    ]);
  });

  describe('when its clock ends before the application has stopped its servers and workers', () => {
    const begun = async (more = {}) => {
      const process = await world.process({ ...settings, watchdogTimeout: ms(3_000), ...more });
      const other = await world.process();
      return { ...process, process, other };
    };

    it('refuses all who wait, and those who would have to', async () => {
      const { locks, runtime, process, other } = await begun();
      const busy = await other.locks.acquire('busy', { leaseTime: '1h' });
      const mine = await locks.acquire('mine');
      const inside = errorOf(locks.withLock('body', () => locks.acquire('busy')));
      const waiters = [
        locks.acquire('busy'),
        locks.acquire('mine'),
        locks.acquire(['busy', 'mine']),
        locks.acquire('busy', { newest: true }),
      ].map(errorOf);
      await runtime.advance(100);
      locks.beginShutdown();
      await runtime.advance(9_900);
      const refused = (waiter: Promise<Error>) =>
        waiter.then((error) => expect(error).toMatchObject({ byShutdown: true }));
      await runtime.advance(200);
      await Promise.all([inside, ...waiters].map(refused));
      const late = [locks.acquire('busy'), locks.acquire('mine'), locks.acquire(['a', 'busy'])].map(errorOf);
      await runtime.advance(10);
      await Promise.all(late.map(refused));
      await busy.release();
      await mine.release();
      await runtime.until(locks.close());
      expect(leftovers(process)).toEqual(NOTHING);
    });

    it.each<[string, (locks: LockService, name: string) => Promise<{ release(): Promise<void> }>]>([
      ['a lock', (locks, name) => locks.acquire(name)],
      ['a fair lock', (locks, name) => locks.acquire(name, { type: 'fair' })],
      ['the newest', (locks, name) => locks.acquire(name, { newest: true })],
      ['permits', (locks, name) => locks.acquire(name, { permits: 2 })],
      ['a read lock', (locks, name) => locks.acquire(name, { type: 'read' })],
      ['several locks', (locks, name) => locks.acquire([name, `${name}:too`])],
      ['several fair locks', (locks, name) => locks.acquire([name, `${name}:too`], { type: 'fair' })],
      [
        'a semaphore',
        async (locks, name) => {
          const semaphore = locks.getSemaphore(name, { permits: 1 });
          await semaphore.acquire();
          return semaphore;
        },
      ],
    ])('ends waits for %s in an outage, and lets those who have just asked be answered', async (_, acquire) => {
      const { locks, runtime, backend } = await begun({ outageTimeout: ms(Number.POSITIVE_INFINITY) });
      const disturb = (how: Disturbance) => {
        backend.disturb(how, 'acquire', 'acquireAll');
        backend.synchronizerRequests.disturb(how, 'takePermits');
      };
      const heal = () => {
        backend.heal();
        backend.synchronizerRequests.heal();
      };
      locks.beginShutdown();
      await runtime.advance(9_000);
      disturb(refused);
      const waiting = errorOf(acquire(locks, 'order'));
      await runtime.advance(900);
      heal();
      const answer = latch();
      disturb(answerAfter(answer.promise));
      const asking = acquire(locks, 'stock');
      await runtime.advance(200);
      expect(await waiting).toMatchObject({ byShutdown: true });
      answer.open();
      await (await runtime.until(asking)).release();
      heal();
      const failure = latch();
      disturb((...request) => failure.promise.then(() => refused(...request)));
      const late = errorOf(acquire(locks, 'order'));
      await runtime.advance(200);
      failure.open();
      await runtime.advance(10);
      expect(await late).toMatchObject({ byShutdown: true });
      await runtime.until(locks.close());
    });

    it('tells bodies to stop, renews what they hold, and grants what is free', async () => {
      const { locks, runtime, other, logger } = await begun();
      const end = latch();
      let held!: Lease;
      const body = locks.withLock('job', async (lease) => {
        held = lease;
        await end.promise;
        await locks.withLock('result', async () => {});
        return lease.held;
      });
      await runtime.settle();
      const { signal } = held;
      locks.beginShutdown();
      await runtime.advance(9_999);
      expect(signal.aborted).toBe(false);
      await runtime.advance(2);
      expect(signal.reason).toMatchObject({ name: 'LockAbortedError' });
      await runtime.advance(60_000);
      expect([held.held, await other.locks.isLocked('job')]).toEqual([true, true]);
      end.open();
      expect(await runtime.until(body)).toBe(true);
      const before = runtime.monotonic();
      await runtime.until(locks.close());
      expect(runtime.monotonic()).toBe(before);
      expect(logger.warnings).toEqual([
        'Shutdown: 1 lock is still held after 10000 ms (job); their signals are aborted. They are renewed while the application waits for their bodies',
      ]);
    });

    it('lets lapse what is still held at the end', async () => {
      const { locks, runtime, other, logger } = await begun();
      let held!: Lease;
      void locks.withLock('job', (lease) => {
        held = lease;
        return new Promise(() => {});
      });
      await runtime.settle();
      locks.beginShutdown();
      await runtime.advance(20_000);
      const before = runtime.monotonic();
      await runtime.until(locks.close());
      expect(runtime.monotonic()).toBe(before);
      expect(logger.warnings[1]).toBe(
        'Shutdown: 1 lock is still held after 10000 ms (job), and the application waits no longer. The locks are not renewed any more, and end with their leases',
      );
      await runtime.advance(3_100);
      expect([held.held, await other.locks.isLocked('job')]).toEqual([false, false]);
    });

    it('says so if the application was closed by a body that it waits for', async () => {
      const { locks, runtime, logger } = await begun();
      const body = locks.withLock('admin', async () => {
        locks.beginShutdown();
        await new Promise((resolve) => runtime.timer(20_000, () => resolve(undefined)));
      });
      await runtime.until(body);
      expect(logger.warnings).toEqual([
        expect.stringMatching(/^Shutdown: 1 lock is still held .*\(admin\).*app\.close\(\).*without await/),
      ]);
    });
  });

  it('lets live scopes acquire what they need to end', async () => {
    const { locks, runtime } = await world.process(settings);
    const other = await world.process();
    const busy = await other.locks.acquire('busy');
    const end = latch();
    const body = locks.withLock('order', async () => {
      await end.promise;
      await locks.withLock('order', async () => {});
      await locks.withLock(['stock', 'basket'], async () => {});
      await locks.withLock('stock', () => locks.withLock('busy', async () => {}));
      return 'sold';
    });
    await runtime.settle();
    const drained = locks.drain();
    end.open();
    await runtime.advance(1_000);
    await busy.release();
    expect(await runtime.until(body)).toBe('sold');
    await runtime.until(drained);
    expect(runtime.monotonic()).toBeLessThan(2_000);
  });

  it('lets live scopes acquire what they need also inside the scope of another service', async () => {
    const { locks, runtime } = await world.process(settings);
    const other = await world.process();
    const end = latch();
    const body = locks.withLock('order', () =>
      other.locks.withLock('elsewhere', async () => {
        await end.promise;
        return locks.withLock('stock', async () => 'sold');
      }),
    );
    await runtime.settle();
    const drained = locks.drain();
    end.open();
    expect(await runtime.until(body)).toBe('sold');
    await runtime.until(drained);
  });

  it('lets waiters inside live scopes continue to wait', async () => {
    const { locks, runtime } = await world.process(settings);
    const other = await world.process();
    const busy = await other.locks.acquire('busy');
    const body = locks.withLock('order', () => locks.withLock('busy', async () => 'sold'));
    const both = locks.withLock('basket', () => locks.withLock(['busy', 'stock'], async () => 'sold'));
    await runtime.advance(100);
    const drained = locks.drain();
    await runtime.advance(1_000);
    await busy.release();
    expect(await runtime.until(Promise.all([body, both]))).toEqual(['sold', 'sold']);
    await runtime.until(drained);
  });

  describe('past its timeout', () => {
    it('tells bodies to stop, and lets their locks lapse', async () => {
      const process = await world.process(settings);
      const { locks, backend, runtime, logger } = process;
      const other = await world.process();
      let held!: Lease;
      void locks.withLock('order', (lease) => {
        held = lease;
        return new Promise(() => {});
      });
      await runtime.settle();
      const { signal } = held;
      const closed = locks.close();
      await runtime.advance(9_999);
      expect(signal.aborted).toBe(false);
      await runtime.advance(2);
      expect(signal.reason).toBeInstanceOf(LockAbortedError);
      await runtime.until(closed);
      expect(runtime.monotonic()).toBeLessThan(11_000);
      expect(logger.warnings).toEqual([expect.stringContaining('(order)')]);
      expect(backend.count('release')).toBe(0);
      const renewals = backend.count('renew');
      await runtime.advance(15_000);
      expect(await other.locks.isLocked('order')).toBe(true);
      await runtime.advance(20_000);
      expect(await other.locks.isLocked('order')).toBe(false);
      expect(backend.count('renew')).toBe(renewals);
      expect(held.held).toBe(false);
      expect(leftovers(process)).toEqual(NOTHING);
    });

    it('rejects callers that still wait, so that nothing keeps the process alive', async () => {
      const process = await world.process(settings);
      const { locks, runtime } = process;
      const other = await world.process();
      await other.locks.acquire('busy');
      const one = errorOf(locks.withLock('order', () => locks.acquire('busy')));
      const several = errorOf(locks.withLock('basket', () => locks.acquire(['busy', 'stock'])));
      await runtime.advance(100);
      await runtime.until(locks.close());
      expect(await one).toBeInstanceOf(LockAbortedError);
      expect(await several).toBeInstanceOf(LockAbortedError);
      await runtime.advance(60_000);
      expect(runtime.keepAliveTimers).toBe(0);
    });

    it('gives bodies that still run no more locks', async () => {
      const { locks, runtime } = await world.process(settings);
      const end = latch();
      const body = errorOf(
        locks.withLock('order', async () => {
          await end.promise;
          await locks.acquire('stock');
        }),
      );
      await runtime.settle();
      await runtime.until(locks.close());
      end.open();
      expect(await body).toBeInstanceOf(LockAbortedError);
    });

    it('gives bodies that still run no read lock of what they write', async () => {
      const { locks, runtime } = await world.process();
      const body = latch();
      const asked = locks.withLock('page', { type: 'write' }, async () => {
        await body.promise;
        return errorOf(locks.acquire('page', { type: 'read' }));
      });
      await runtime.settle();
      await runtime.until(locks.close());
      body.open();
      expect(await runtime.until(asked.catch((error: Error) => error))).toMatchObject({ name: 'LockAbortedError' });
    });

    it('is not waited for twice: drain(), then close()', async () => {
      const { locks, runtime } = await world.process(settings);
      void locks.withLock('order', () => new Promise(() => {}));
      await runtime.settle();
      await runtime.until(Promise.all([locks.drain(), locks.drain()]));
      await runtime.until(locks.close());
      expect(runtime.monotonic()).toBe(10_000);
    });
  });

  it('does not wait for the body that calls close(), and frees its lock when it ends', async () => {
    const { locks, runtime } = await world.process(settings);
    const other = await world.process();
    const elsewhere = latch();
    const log: string[] = [];
    const others = locks.withLock('stock', async () => {
      await elsewhere.promise;
      log.push('the other body ends');
    });
    const body = locks.withLock('order', () =>
      locks.withLock('order', async () => {
        await locks.close();
        log.push('close() returns');
      }),
    );
    await runtime.advance(1_000);
    expect(log).toEqual([]);
    elsewhere.open();
    await runtime.until(Promise.all([body, others]), 100);
    expect(log).toEqual(['the other body ends', 'close() returns']);
    await runtime.until(locks.close(), 100);
    expect(await other.locks.isLocked('order')).toBe(false);
  });

  it('does not wait for the body that calls close() on several services', async () => {
    const [one, two] = [await world.process(settings), await world.process(settings)];
    const { runtime } = one;
    const body = one.locks.withLock('order', () =>
      two.locks.withLock('order:2', async () => {
        await Promise.all([one.locks.drain(), two.locks.drain()]);
        await Promise.all([one.locks.close(), two.locks.close()]);
      }),
    );
    await runtime.until(body, 100);
    await runtime.until(Promise.all([one.locks.close(), two.locks.close()]), 100);
  });

  it('does not wait for the bodies around a body with reentry: false that calls close()', async () => {
    const { locks, runtime } = await world.process(settings);
    const elsewhere = latch();
    const log: string[] = [];
    const others = locks.withLock('stock', () => elsewhere.promise);
    const stranger = { reentry: false } as const;
    const body = locks.withLock('order', () =>
      locks.withLock('invoice', stranger, () =>
        locks.withLock('mail', stranger, async () => {
          await locks.close();
          log.push('close() returns');
        }),
      ),
    );
    await runtime.advance(1_000);
    expect(log).toEqual([]);
    elsewhere.open();
    await runtime.until(Promise.all([body, others]), 100);
    await runtime.until(locks.close(), 100);
  });

  it('does not wait for a body that calls close() after it has released its lock', async () => {
    const { locks, runtime } = await world.process(settings);
    const body = locks.withLock('order', async (lease) => {
      await lease.release();
      await locks.close();
    });
    await runtime.until(body, 100);
    await runtime.until(locks.close(), 100);
  });

  it('does not wait for a body that calls close() because its lock was lost', async () => {
    const { locks, runtime } = await world.process(settings);
    const other = await world.process();
    const body = errorOf(
      locks.withLock('order', async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        await locks.close();
      }),
    );
    await runtime.settle();
    await other.locks.forceRelease('order');
    await runtime.advance(10_100);
    await runtime.until(body, 100);
    await runtime.until(locks.close(), 100);
  });

  it('does not wait for a body that has released its lock itself, once it has ended', async () => {
    const { locks, runtime } = await world.process(settings);
    const end = latch();
    const body = locks.withLock('order', async (lease) => {
      await lease.release();
      await end.promise;
    });
    await runtime.settle();
    const drained = locks.drain();
    await runtime.advance(1_000);
    end.open();
    await body;
    await runtime.until(drained);
    expect(runtime.monotonic()).toBe(1_000);
  });

  it('does not wait for a lock that was lost under a body that has ended', async () => {
    const { locks, runtime } = await world.process(settings);
    const other = await world.process();
    const end = latch();
    const body = errorOf(locks.withLock('order', () => end.promise));
    await runtime.settle();
    await other.locks.forceRelease('order');
    await runtime.advance(10_100);
    const drained = locks.drain();
    end.open();
    await body;
    const before = runtime.monotonic();
    await runtime.until(drained);
    expect(runtime.monotonic()).toBe(before);
  });

  it('releases what an acquisition under way still gets', async () => {
    const { locks, backend, runtime } = await world.process({ shutdownTimeout: ms(1_000) });
    const other = await world.process();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const waiting = errorOf(locks.acquire('order'));
    await runtime.settle();
    const closed = locks.close();
    expect(await runtime.until(waiting)).toBeInstanceOf(LockAbortedError);
    await runtime.settle();
    expect(await other.locks.isLocked('order')).toBe(true);
    answer.open();
    await runtime.until(closed);
    expect(await other.locks.isLocked('order')).toBe(false);
  });

  it('leaves most of the commandTimeout to an acquisition under way, so that what it gets is released', async () => {
    const { locks, backend, runtime } = await world.process({ shutdownTimeout: ms(0), commandTimeout: 10_000 });
    const other = await world.process();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const waiting = errorOf(locks.acquire('order'));
    await runtime.settle();
    const closed = locks.close();
    await waiting;
    await runtime.advance(9_000);
    expect(await other.locks.isLocked('order')).toBe(true);
    answer.open();
    await runtime.until(closed);
    expect(await other.locks.isLocked('order')).toBe(false);
  });

  it('waits for a leader that cleans up after its term', async () => {
    const { locks, runtime } = await world.process(settings);
    await runtime.advance(1_000);
    const cleanUp = latch();
    locks.lead('cleaner', {
      onElected: ({ signal }) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())),
      onRevoked: () => cleanUp.promise,
    });
    await runtime.settle();
    let over = false;
    const drained = locks.drain().then(() => {
      over = true;
    });
    await runtime.advance(5_000);
    expect(await locks.isLocked('cleaner')).toBe(false);
    expect(over).toBe(false);
    cleanUp.open();
    await runtime.settle();
    expect(over).toBe(true);
    await drained;
  });

  describe('reports the locks that are still held', () => {
    it.each([
      [1, 'Shutdown: 1 lock is still held after 10000 ms (order:1); '],
      [2, 'Shutdown: 2 locks are still held after 10000 ms (order:1, order:2); '],
      [
        12,
        `Shutdown: 12 locks are still held after 10000 ms (${Array.from({ length: 10 }, (_, n) => `order:${n + 1}`).join(', ')}); `,
      ],
    ])('%i of them, the first ten by their names', async (count, line) => {
      const { locks, runtime, logger } = await world.process(settings);
      const reasons: unknown[] = [];
      for (let n = 1; n <= count; n++) {
        void locks.withLock(`order:${n}`, ({ signal }) => {
          signal.addEventListener('abort', () => reasons.push(signal.reason.message));
          return new Promise(() => {});
        });
      }
      await runtime.settle();
      await runtime.until(locks.drain());
      expect(logger.warnings).toEqual([expect.stringContaining(line)]);
      expect(reasons).toEqual(
        Array.from({ length: count }, (_, n) => `Shutdown stopped waiting for the body that holds 'order:${n + 1}'`),
      );
    });
  });

  it('names a lease that nobody has given back as one without a body', async () => {
    const { locks, runtime, logger } = await world.process(settings);
    await locks.acquire('order');
    void locks.withLock('stock', () => new Promise(() => {}));
    await runtime.settle();
    await runtime.until(locks.close());
    expect(logger.warnings).toEqual([
      expect.stringContaining('2 locks are still held after 10000 ms (order without a body, from acquire(), stock); '),
    ]);
  });

  it('rejects a change of a semaphore that gets no answer', async () => {
    const { locks, backend, runtime } = await world.process({ shutdownTimeout: ms(1_000), commandTimeout: 2_000 });
    backend.synchronizerRequests.disturb(() => new Promise(() => {}), 'addPermits');
    const log: string[] = [];
    void errorOf(locks.getSemaphore('mail').release()).then(({ name }) => log.push(name));
    const { close } = backend;
    backend.close = () => {
      log.push('closes');
      return close.call(backend);
    };
    await runtime.settle();
    await runtime.until(locks.close());
    await runtime.settle();
    expect(log.sort()).toEqual(['LockUnavailableError', 'closes']);
    expect(runtime.monotonic()).toBe(2_500);
  });

  it('watches the unfinished work only while it waits', async () => {
    const { locks, runtime } = await world.process(settings);
    const { work } = locks.engine.services;
    const { watch } = work;
    let watching = 0;
    work.watch = (listener) => {
      const unwatch = watch.call(work, listener);
      watching++;
      return () => {
        watching--;
        unwatch();
      };
    };
    const end = latch();
    const body = locks.withLock('order', () => end.promise);
    await runtime.settle();
    const closed = locks.close();
    await runtime.settle();
    expect(watching).toBe(1);
    end.open();
    await runtime.until(Promise.all([body, closed]));
    expect(watching).toBe(0);
  });

  it('keeps the process alive while it waits, and leaves no timer', async () => {
    const process = await world.process(settings);
    const { locks, runtime } = process;
    const end = latch();
    const body = locks.withLock('order', () => end.promise);
    await runtime.settle();
    const drained = locks.drain();
    await runtime.settle();
    expect(runtime.keepAliveTimers).toBeGreaterThan(0);
    end.open();
    await runtime.until(Promise.all([body, drained]));
    expect(runtime.keepAliveTimers).toBe(0);
    await runtime.advance(1_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it.each([
    [10_000, 500],
    [1_000, 250],
  ])('with a commandTimeout of %i ms leaves the last %i ms to the connections', async (commandTimeout, reserved) => {
    const shutdownTimeout = 3_000;
    const { locks, backend, runtime } = await world.process({ shutdownTimeout: ms(shutdownTimeout), commandTimeout });
    const calls: number[] = [];
    backend.close = () => {
      calls.push(runtime.monotonic());
      return new Promise(() => {});
    };
    backend.disturb(() => new Promise(() => {}), 'acquire');
    const waiting = errorOf(locks.acquire('order'));
    await runtime.settle();
    await runtime.until(locks.close());
    expect(await waiting).toBeInstanceOf(LockAbortedError);
    const end = shutdownTimeout + commandTimeout;
    expect([...calls, runtime.monotonic()]).toEqual([end - reserved, end]);
  });

  it('takes no longer than one commandTimeout from close() on if it has waited for bodies long before', async () => {
    const { locks, backend, runtime } = await world.process({ shutdownTimeout: ms(3_000), commandTimeout: 2_000 });
    await runtime.until(locks.drain());
    await runtime.advance(60_000);
    backend.close = () => new Promise(() => {});
    const began = runtime.monotonic();
    await runtime.until(locks.close());
    expect(runtime.monotonic() - began).toBe(2_000);
  });

  it('waits until the backend has closed its connections', async () => {
    const { locks, backend, runtime } = await world.process(settings);
    const closed = latch();
    backend.close = () => closed.promise;
    let over = false;
    const closing = locks.close().then(() => {
      over = true;
    });
    await runtime.settle();
    expect(over).toBe(false);
    closed.open();
    await closing;
    await runtime.settle();
    expect(runtime.timers).toBe(0);
  });

  it('ends a queue that was kept for its next caller', async () => {
    const process = await world.process(settings);
    const { locks, runtime } = process;
    const other = await world.process();
    const busy = await other.locks.acquire('order');
    const waiting = locks.acquire('order');
    await runtime.advance(100);
    await busy.release();
    await (await runtime.until(waiting)).release();
    await runtime.settle();
    expect(locks.engine.activity().queues).toBe(1);
    const began = runtime.monotonic();
    await runtime.until(locks.close());
    expect(runtime.monotonic()).toBe(began);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('lets a body that calls close() wait no longer than shutdownTimeout for the others', async () => {
    const { locks, runtime } = await world.process(settings);
    void locks.withLock('stock', () => new Promise(() => {}));
    let returned: number | undefined;
    let again: number | undefined;
    const body = locks.withLock('order', async () => {
      await runtime.advance(0);
      await locks.close();
      returned = runtime.monotonic();
      await locks.close();
      again = runtime.monotonic();
    });
    await runtime.until(body, 11_000);
    expect([returned, again]).toEqual([10_000, 10_000]);
  });

  it('reports a failure of the backend to close although the body that called close() does not wait for it', async () => {
    const { locks, backend, runtime } = await world.process(settings);
    const failures: Error[] = [];
    locks.on('error', (error) => failures.push(error));
    const failure = new Error('the connection is gone');
    const close = backend.close.bind(backend);
    backend.close = () => Promise.reject(failure);
    const { services, synchronizers } = locks.engine;
    const shutdown = new Shutdown(services, synchronizers, 10_000, 2_000);
    await runtime.until(locks.withLock('order', () => shutdown.close()));
    await runtime.advance(1_000);
    expect(failures).toEqual([failure]);
    backend.close = close;
  });

  it('answers later questions with LockUnavailableError', async () => {
    const { locks, runtime } = await world.process(settings);
    await runtime.until(locks.close());
    await expect(locks.isLocked('order')).rejects.toThrow(LockUnavailableError);
    await expect(locks.acquire('order')).rejects.toThrow(LockAbortedError);
  });
});

describe.each(STORES)('shutdown, on %s', (store) => {
  const world = openWorld(store);

  it('frees all locks of bodies that end, and hands none of them on', async () => {
    const [process, other] = await world.processes(2, { shutdownTimeout: ms(20_000) });
    const { locks } = process;
    const section = new Section();
    const results = Array.from({ length: 200 }, (_, i) =>
      locks
        .withLock(`order:${i % 5}`, () => section.pass(String(i), 5))
        .then(
          () => 'served',
          (error) => error.name,
        ),
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
    await locks.close();
    const counted = await Promise.all(results);
    expect(counted.filter((result) => result === 'served').length).toBe(section.entries.length);
    expect(counted.every((result) => result === 'served' || result === 'LockAbortedError')).toBe(true);
    for (let i = 0; i < 5; i++) expect(await other.locks.isLocked(`order:${i}`)).toBe(false);
    await nothingIsLeft(process);
  });
});
