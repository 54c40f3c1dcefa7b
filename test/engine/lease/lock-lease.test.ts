import { LockLostError, LockNotOwnedError, LockUnavailableError } from '../../../lib/engine/errors.js';
import type { LockEvents } from '../../../lib/engine/events/lock-events.js';
import { LockLease } from '../../../lib/engine/lease/lock-lease.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { ms, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

describe('a lease', () => {
  const world = openVirtualWorld();

  it('has the names of its locks', async () => {
    const { locks } = await world.process();
    const names: string[] = [];
    for (const name of ['order', ['order', 'stock'], ['order', 'parcel', 'stock']])
      await locks.withLock(name as string, (lease) => void names.push(lease.name));
    expect(names).toEqual(['order', 'order, stock', 'order, parcel, stock']);
  });

  it('is not held once its time is over, even if no timer has fired', async () => {
    const { locks, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '10s' });
    runtime.block(9_800);
    expect([lease.held, lease.remainingTime()]).toEqual([true, 98]);
    runtime.block(98);
    expect([lease.held, lease.remainingTime()]).toEqual([false, 0]);
    runtime.block(100);
    expect([lease.held, lease.remainingTime()]).toEqual([false, 0]);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
  });

  it('is not certain to be held while the clocks of its machine diverge', async () => {
    const { locks, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '60s' });
    runtime.setWallClock(-1_100);
    expect(lease.held).toBe(false);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
    runtime.setWallClock(1_100);
    expect(lease.held).toBe(true);
    lease.assertHeld();
    await lease.release();
  });

  it('is extended when extend() settles, and not before', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '10s' });
    await lease.extend('60s');
    expect(lease.remainingTime()).toBeGreaterThan(50_000);
    backend.disturb(refused, 'renew');
    expect(await errorOf(runtime.until(lease.extend('90s')))).toBeInstanceOf(LockUnavailableError);
  });

  it('that is released a second time waits for the first release, whose error it does not repeat', async () => {
    const { locks, backend, runtime } = await world.process();
    const other = await world.process();
    for (const [name, isLost] of [
      ['order', false],
      ['order', true],
      [['order', 'stock'], false],
      [['order', 'stock'], true],
    ] as const) {
      const lease = await locks.acquire(name as string);
      if (isLost) await other.backend.forceRelease(locks.engine.services.keyOf('order'));
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'release');
      const ended: string[] = [];
      const first = lease.release().then(
        () => void ended.push('first'),
        () => void ended.push('first failed'),
      );
      const second = lease.release().then(() => void ended.push('second'));
      await runtime.settle();
      expect(ended).toEqual([]);
      answer.open();
      await Promise.all([first, second]);
      expect(ended.sort()).toEqual([isLost ? 'first failed' : 'first', 'second']);
      backend.heal();
    }
  });

  it('that was detached belongs to its ticket from then on', async () => {
    const { locks, runtime } = await world.process();
    const events: LockEvents['detached'][] = [];
    locks.on('detached', (event) => events.push(event));
    const lease = await locks.acquire('order', { group: 'payments' });
    const ticket = await runtime.until(lease.detach({ for: '5m' }));
    expect(events).toMatchObject([{ name: 'order', group: 'payments', owner: lease.owner, leaseTime: 300_000 }]);
    expect(() => lease.assertHeld()).toThrow(LockNotOwnedError);
    expect(await errorOf(lease.extend('5m'))).toBeInstanceOf(LockNotOwnedError);
    await lease.release();
    const adopted = await locks.adopt(ticket);
    expect(adopted.held).toBe(true);
    await adopted.release();
  });

  it('ends with an event that lacks its duration, if nobody listened when it began', async () => {
    const { locks, runtime } = await world.process();
    const [released, detached] = [await locks.acquire('order'), await locks.acquire('stock')];
    const durations: (number | undefined)[] = [];
    locks.on('released', ({ held }) => durations.push(held));
    locks.on('detached', ({ held }) => durations.push(held));
    await runtime.advance(50);
    await released.release();
    await detached.detach({ for: '5m' });
    expect(durations).toEqual([undefined, undefined]);
    const [next, other] = [await locks.acquire('order'), await locks.acquire('parcel')];
    await runtime.advance(50);
    await next.release();
    await other.detach({ for: '5m' });
    expect(durations.slice(2)).toEqual([50, 50]);
  });

  it('whose time was over before its body had ended is not kept for holdAtLeast', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '1s' });
    const body = () => runtime.block(988); // to the last millisecond that is certain
    const outcome = await errorOf(locks.holdWhile(lease, body, { holdAtLeast: ms(5_000) }));
    expect(outcome).toBeInstanceOf(LockLostError);
    expect(backend.commands).toEqual(['acquire', 'release']);
    expect(await locks.isLocked('order')).toBe(false);
  });

  it('is announced with those of its locks that its process did not hold yet', async () => {
    const { locks } = await world.process();
    const names: string[] = [];
    locks.on('acquired', ({ name }) => names.push(name));
    await locks.withLock(['order', 'stock'], () => locks.withLock(['order', 'parcel'], async () => {}));
    expect(names).toEqual(['order', 'stock', 'parcel']);
  });

  it('tells for how long it was held when it is lost', async () => {
    const { locks, runtime } = await world.process();
    const durations: (number | undefined)[] = [];
    locks.on('lost', ({ held }) => durations.push(held));
    await runtime.advance(500);
    await locks.acquire('order');
    await runtime.advance(70);
    await locks.forceRelease('order');
    expect(durations).toEqual([70]);
  });

  it.each(['order', 'stock'])(
    'of several locks is lost when the backend no longer has one of them: %s',
    async (gone) => {
      const [{ locks }, other] = [await world.process(), await world.process()];
      const lease = await locks.acquire(['order', 'stock']);
      const { signal } = lease;
      await other.backend.forceRelease(locks.engine.services.keyOf(gone));
      const error = await errorOf(lease.release());
      expect(error).toBeInstanceOf(LockLostError);
      expect(signal.reason).toBe(error);
      expect(await locks.isLocked('order')).toBe(false);
      expect(await locks.isLocked('stock')).toBe(false);
    },
  );

  it('runs no body until it is certain to be held, after the clocks have diverged', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order');
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'renew', 'inspect');
    runtime.suspend(2_000);
    let isRunning = false;
    const running = lease.run(async () => {
      isRunning = true;
      expect(lease.held).toBe(true);
    });
    await runtime.settle();
    expect(isRunning).toBe(false);
    answer.open();
    await runtime.until(running);
    expect(isRunning).toBe(true);
    await lease.release();
  });

  describe('that is released in the background', () => {
    /** Runs a body whose release in the background gets this answer later. */
    const open = async () => {
      const process = await world.process({ shutdownTimeout: ms(10_000) });
      const { locks, backend } = process;
      const losses: LockEvents['lost'][] = [];
      locks.on('lost', (event) => losses.push(event));
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'release');
      const run = (body = async (_: Lease) => {}) => locks.withLock('order', { release: 'background' }, body);
      return { ...process, losses, answer, run };
    };

    it('is not lost when the answer is that it was released', async () => {
      const { run, answer, runtime, losses, logger } = await open();
      await run();
      answer.open();
      await runtime.settle();
      expect([...losses, ...logger.warnings]).toEqual([]);
    });

    it('is lost when the answer is that it was gone', async () => {
      const { locks, run, answer, runtime, losses, logger } = await open();
      const other = await world.process();
      let signal: AbortSignal | undefined;
      await run(async (lease) => {
        signal = lease.signal;
        await other.backend.forceRelease(locks.engine.services.keyOf('order'));
      });
      expect(losses).toEqual([]);
      answer.open();
      await runtime.settle();
      expect(losses).toMatchObject([{ name: 'order' }]);
      expect(signal?.reason).toBe(losses[0].error);
      expect(logger.warnings).toHaveLength(1);
    });

    it('keeps its service from closing until the answer has come, and not longer', async () => {
      const { locks, run, answer, runtime } = await open();
      await run();
      let isClosed = false;
      const closing = locks.close().then(() => {
        isClosed = true;
      });
      await runtime.advance(2_000);
      expect(isClosed).toBe(false);
      answer.open();
      await runtime.until(closing, 1_000);
    });

    it('does not keep its service from closing once it was answered', async () => {
      const { locks, run, answer, runtime } = await open();
      answer.open();
      await run();
      await runtime.settle();
      await runtime.until(locks.close(), 1_000);
    });
  });

  it('has the tokens and the owners of its acquisition, one for each lock', async () => {
    const { locks } = await world.process();
    const lease = await locks.acquire(['order', 'stock']);
    const tokens = ['order', 'stock'].map((name) => lease.tokens.get(name));
    const owners = ['order', 'stock'].map((name) => lease.owners.get(name));
    expect(new Set(owners).size).toBe(2);
    expect(lease.owner).toBe(owners[0]);
    const held = locks.engine.services.heldLocks();
    expect(held.map(({ owner }) => owner).sort()).toEqual([...owners].sort());
    for (const lock of held) lock.token += 1_000;
    expect(['order', 'stock'].map((name) => lease.tokens.get(name))).toEqual(tokens);
    await lease.release();
  });

  it.each([
    [7, 7],
    [7, 8],
  ])('of several locks has a common token only if theirs are equal: %d, %d', async (...tokens) => {
    const { locks } = await world.process();
    const leases = [await locks.acquire('order'), await locks.acquire('stock')];
    const held = locks.engine.services.heldLocks();
    for (const [index, lock] of held.entries()) lock.token = tokens[index];
    const several = new LockLease(locks.engine.services, held, (leases[0] as LockLease).terms, [], () => {});
    if (tokens[0] === tokens[1]) expect(several.fencingToken).toBe(7);
    else expect(() => several.fencingToken).toThrow('order, stock have different fencing tokens');
    for (const lock of held) lock.shares = lock.shares.filter((share) => share !== several);
    for (const lease of leases) await lease.release();
  });

  describe('of several locks', () => {
    const open = async () => {
      const process = await world.process();
      const { locks } = process;
      const { services } = locks.engine;
      const lease = await locks.acquire(['order', 'stock']);
      const [order, stock] = ['order', 'stock'].map((name) => services.heldLocks(services.keyOf(name))[0]);
      return { ...process, services, lease, order, stock };
    };

    it('is lost once, for the first of them that is lost', async () => {
      const { lease, services, order, stock } = await open();
      for (const lock of [order, stock]) lock.forgetShares();
      const ends: boolean[] = [];
      const { terms } = lease as unknown as LockLease;
      const several = new LockLease(services, [order, stock], terms, [], (_, isLost) => ends.push(isLost));
      const losses = ['stock', 'order'].map((name) => new LockLostError(`${name} is gone`, name));
      stock.lose(losses[0]);
      order.lose(losses[1]);
      expect([ends, several.signal.reason]).toEqual([[true], losses[0]]);
      expect(await errorOf(several.release())).toBe(losses[0]);
      await errorOf(lease.release());
    });

    it('in the background is lost once, although the answers say that both are gone', async () => {
      const { locks, backend, logger, runtime } = await world.process();
      const losses: unknown[] = [];
      locks.on('lost', ({ name }) => losses.push(name));
      backend.disturb(async () => ({ released: false, listeners: 0 }), 'release');
      await locks.withLock(['order', 'stock'], { release: 'background' }, async () => {});
      await runtime.settle();
      expect(losses).toEqual(['order, stock']);
      expect(logger.warnings).toHaveLength(1);
    });

    it('lasts as long as the first of them that ends', async () => {
      const { lease, services, order, stock } = await open();
      expect(lease.remainingTime()).toBe(29_698);
      await services.watchdog.extend(order, 60_000);
      expect(lease.remainingTime()).toBe(29_698);
      await services.watchdog.extend(stock, 90_000);
      expect(lease.remainingTime()).toBe(59_398);
      await lease.release();
    });

    it('is held once each of them is confirmed after the clocks have diverged', async () => {
      const { lease, services, order, stock, runtime } = await open();
      runtime.setWallClock(-5_000);
      await services.watchdog.confirmNow(order);
      expect(lease.held).toBe(false);
      await services.watchdog.confirmNow(stock);
      expect(lease.held).toBe(true);
      await lease.release();
    });

    it.each(['order', 'stock'] as const)(
      'is lost for the reason of the one that ended first, if the answers say that they are gone: not of %s',
      async (extended) => {
        const { lease, services, backend, runtime, ...opened } = await open();
        await services.watchdog.extend(opened[extended], 90_000);
        const answer = latch();
        backend.disturb(() => answer.promise.then(() => ({ released: false, listeners: 0 })), 'release');
        const error = errorOf(lease.release());
        runtime.block(40_000);
        answer.open();
        expect((await error).message).toContain("'order, stock' was lost: its lease was not renewed in time");
      },
    );

    it.each([
      ['both were released', [], true],
      ['the release of one was not answered', ['stock'], false],
      ['neither was answered', ['order', 'stock'], false],
    ] as const)('says whether its release was confirmed: %s', async (_, unanswered, confirmed) => {
      const { lease, locks, backend } = await open();
      const events: LockEvents['released'][] = [];
      locks.on('released', (event) => events.push(event));
      backend.disturb((execute, request) => {
        const { key } = request as { key: string };
        return unanswered.some((name) => key.endsWith(name)) ? refused(execute, request) : execute();
      }, 'release');
      await lease.release();
      expect(events).toMatchObject([
        { name: 'order', confirmed },
        { name: 'stock', confirmed },
      ]);
    });

    it('is lost if one of them is gone, although the release of the other was not answered', async () => {
      const { lease, backend } = await open();
      backend.disturb(async (execute, request) => {
        const { key } = request as { key: string };
        return key.endsWith('order') ? { released: false, listeners: 0 } : refused(execute, request);
      }, 'release');
      expect(await errorOf(lease.release())).toBeInstanceOf(LockLostError);
    });

    it('frees those that no other lease shares', async () => {
      const { lease, locks } = await open();
      const events: string[] = [];
      locks.on('released', ({ name }) => events.push(name));
      const inner = await lease.run(() => locks.acquire(['order', 'parcel']));
      await inner.release();
      expect(events).toEqual(['parcel']);
      await lease.release();
      expect(events).toEqual(['parcel', 'order', 'stock']);
    });

    it('in the background keeps its service from closing until all releases are answered', async () => {
      const { locks, backend, runtime } = await world.process({ shutdownTimeout: ms(10_000) });
      const answers = [latch(), latch()];
      let requests = 0;
      backend.disturb((execute, request) => answerAfter(answers[requests++].promise)(execute, request), 'release');
      const events: LockEvents['released'][] = [];
      locks.on('released', (event) => events.push(event));
      await locks.withLock(['order', 'stock'], { release: 'background' }, async () => {});
      expect(events.map(({ name, confirmed }) => [name, confirmed])).toEqual([
        ['order', false],
        ['stock', false],
      ]);
      let isClosed = false;
      const closing = locks.close().then(() => {
        isClosed = true;
      });
      answers[0].open();
      await runtime.advance(2_000);
      expect([requests, isClosed]).toEqual([2, false]);
      answers[1].open();
      await runtime.until(closing, 1_000);
    });
  });

  it('in the background that is only handed off is confirmed at once, and its service may close', async () => {
    const { locks, runtime, logger } = await world.process({ shutdownTimeout: ms(10_000) });
    const events: LockEvents['released'][] = [];
    await locks.withLock('order', async () => {
      locks.on('released', (event) => events.push(event));
      await locks.withLock('order', { release: 'background' }, async () => {});
      expect(events).toEqual([]);
    });
    expect(events).toMatchObject([{ confirmed: true }]);
    await runtime.until(locks.close(), 1_000);
    expect(logger.warnings).toEqual([]);
  });

  it('ends once, and says whether it was lost', async () => {
    const { locks, backend } = await world.process();
    const { services } = locks.engine;
    for (const how of ['released', 'detached', 'lost', 'gone', 'detached when gone'] as const) {
      const name = `order:${how}`;
      const first = await locks.acquire(name);
      const [held] = services.heldLocks(services.keyOf(name));
      held.forgetShares();
      const ends: [LockLease, boolean][] = [];
      const { terms } = first as LockLease;
      const lease = new LockLease(services, [held], terms, [], (ended, isLost) => ends.push([ended, isLost]));
      expect(ends).toEqual([]);
      if (how === 'released') await lease.release();
      if (how === 'detached') await lease.detach({ for: '5m' });
      if (how === 'lost') held.lose(new LockLostError('gone', name));
      if (how.endsWith('gone')) await backend.forceRelease(held.key);
      if (how === 'gone') await errorOf(lease.release());
      if (how === 'detached when gone') expect(await errorOf(lease.detach({ for: '5m' }))).toBe(lease.loss);
      expect(ends).toEqual([[lease, how === 'lost' || how.endsWith('gone')]]);
      held.lose(new LockLostError('gone', name));
      expect(ends).toHaveLength(1);
      expect([lease.live, lease.released]).toEqual([false, how !== 'lost']);
      if (how === 'released') expect(lease.signal.aborted).toBe(false);
    }
  });

  it('has a signal only when it is read, or its body is asked to stop', async () => {
    const { locks } = await world.process();
    const [read, asked] = [(await locks.acquire('order')) as LockLease, (await locks.acquire('stock')) as LockLease];
    expect([read.hasSignal, asked.hasSignal]).toEqual([false, false]);
    expect(read.signal).toBe(read.signal);
    const reason = new Error('stop');
    asked.requestEnd(reason);
    expect([read.hasSignal, asked.hasSignal]).toEqual([true, true]);
    expect([read.signal.aborted, asked.signal.reason]).toEqual([false, reason]);
    expect(asked.held).toBe(true);
    for (const lease of [read, asked]) await lease.release();
  });

  it('that was lost is not asked to stop, because its signal names the loss', async () => {
    const { locks } = await world.process();
    const lease = (await locks.acquire('order')) as LockLease;
    await locks.forceRelease('order');
    lease.requestEnd(new Error('stop'));
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    await errorOf(lease.release());
  });

  it('that is left to lapse is judged by the clock, unless it was given back before', async () => {
    const { locks, runtime, backend } = await world.process();
    const { services } = locks.engine;
    const [lease, ...others] = (await Promise.all(
      ['order', 'stock', 'parcel'].map((name) => locks.acquire(name)),
    )) as LockLease[];
    const reason = new Error('shutdown');
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'release', 'transfer');
    const ending = [others[0].release(), others[1].detach({ for: '5m' })];
    for (const one of [lease, ...others]) one.abort(reason);
    const all = [lease, ...others].map(({ locks: [lock], signal }) => [lock.abandoned, signal.reason, lock] as const);
    expect(all.map(([abandoned]) => abandoned)).toEqual([reason, undefined, undefined]);
    expect(all.map(([, aborted]) => aborted)).toEqual([reason, reason, reason]);
    expect(all.map(([, , lock]) => services.watchdog.guards(lock))).toEqual([true, false, false]);
    answer.open();
    await Promise.all(ending);
    await runtime.advance(30_000);
    expect([lease.held, lease.locks[0].lost !== undefined]).toEqual([false, true]);
    expect(backend.count('renew')).toBe(0);
    await errorOf(lease.release());
  });

  it('that is left to lapse gives the reason to whoever wants to keep it, and otherwise reports its loss', async () => {
    const { locks, runtime } = await world.process();
    const lease = (await locks.acquire('order')) as LockLease;
    const reason = new Error('shutdown');
    lease.abort(reason);
    expect(await errorOf(lease.extend('1m'))).toBe(reason);
    runtime.block(30_000);
    expect(await errorOf(lease.extend('1m'))).toBeInstanceOf(LockLostError);
    await errorOf(lease.release());
  });

  it('that was detached says so, while one that was released says that', async () => {
    const { locks } = await world.process();
    const [detached, released] = [await locks.acquire('order'), await locks.acquire('stock')];
    const ticket = await detached.detach({ for: '5m' });
    await released.release();
    for (const [lease, why] of [
      [detached, "The lease of 'order' was detached"],
      [released, "The lease of 'stock' was released already"],
    ] as const) {
      expect(() => lease.assertHeld()).toThrow(new LockNotOwnedError(why, lease.name));
      expect(await errorOf(lease.run(() => {}))).toMatchObject({ message: why });
      expect(await errorOf(lease.extend('1m'))).toMatchObject({ message: why });
      expect(await errorOf(lease.detach({ for: '5m' }))).toMatchObject({ message: why });
    }
    await (await locks.adopt(ticket)).release();
  });

  it('that is being detached is released when that has ended, whatever came of it', async () => {
    for (const isGone of [false, true]) {
      const { locks, backend, runtime } = await world.process();
      const lease = await locks.acquire('order');
      if (isGone) await backend.forceRelease(locks.engine.services.keyOf('order'));
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'transfer');
      const detached = lease.detach({ for: '5m' }).catch((error: Error) => error);
      expect(lease.held).toBe(false);
      let isReleased = false;
      const released = lease.release().then(() => {
        isReleased = true;
      });
      await runtime.settle();
      expect(isReleased).toBe(false);
      answer.open();
      await runtime.until(released);
      expect((await detached) instanceof LockLostError).toBe(isGone);
      expect(lease.signal.aborted).toBe(isGone);
      expect(backend.count('release')).toBe(isGone ? 2 : 0);
      await locks.forceRelease('order');
    }
  });

  it('says that its time is over although the event loop was blocked, so that nobody has declared it lost', async () => {
    const { locks, runtime } = await world.process();
    const lease = await locks.acquire('order');
    runtime.block(29_698);
    expect(() => lease.assertHeld()).toThrow("The lease of 'order' ended, or the clocks of this machine jumped");
    await errorOf(lease.release());
  });

  it('runs no body, and asks nobody, if the clock shows that its time is over', async () => {
    const { locks, runtime, backend } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '1s' });
    runtime.block(988);
    let isRunning = false;
    const running = lease.run(() => {
      isRunning = true;
    });
    expect(await errorOf(running)).toBeInstanceOf(LockLostError);
    expect([isRunning, backend.count()]).toEqual([false, 1]);
    await errorOf(lease.release());
  });

  it('runs no body if the backend says, after the clocks have diverged, that it is gone', async () => {
    const { locks, runtime, backend } = await world.process();
    const lease = await locks.acquire('order');
    await backend.forceRelease(locks.engine.services.keyOf('order'));
    runtime.suspend(2_000);
    let isRunning = false;
    const running = lease.run(() => {
      isRunning = true;
    });
    expect(await runtime.until(errorOf(running))).toBeInstanceOf(LockLostError);
    expect(isRunning).toBe(false);
    await errorOf(lease.release());
  });

  it('that was released runs no body, and asks nobody, although another lease shares its lock', async () => {
    const { locks, runtime, backend } = await world.process();
    const outer = await locks.acquire('order');
    const inner = await outer.run(() => locks.acquire('order'));
    await inner.release();
    runtime.setWallClock(-5_000);
    expect(await errorOf(inner.run(() => {}))).toBeInstanceOf(LockNotOwnedError);
    expect(backend.count('renew')).toBe(0);
    await outer.release();
  });

  it('that its body has released is not kept for holdAtLeast, nor is the lock that others share', async () => {
    const { locks, backend } = await world.process();
    const outer = await locks.acquire('order');
    const inner = await outer.run(() => locks.acquire('order'));
    await locks.holdWhile(inner, () => inner.release(), { holdAtLeast: ms(5_000) });
    await outer.release();
    expect(backend.commands).toEqual(['acquire', 'release']);
    expect(await locks.isLocked('order')).toBe(false);
  });

  it('of several locks is not kept for holdAtLeast if the time of one of them was over', async () => {
    const { locks, runtime } = await world.process();
    const { services } = locks.engine;
    const lease = await locks.engine.acquire(['order', 'stock']);
    await services.watchdog.extend(lease.locks[1], 90_000);
    const body = () => runtime.block(29_698); // to the last millisecond that is certain
    const outcome = await errorOf(locks.engine.holdWhile(lease, body, 50_000));
    expect(outcome).toBeInstanceOf(LockLostError);
    expect([await locks.isLocked('order'), await locks.isLocked('stock')]).toEqual([false, false]);
  });

  it('explains why it could not be extended by the state of the connection', async () => {
    const { locks, backend } = await world.process();
    const lease = await locks.acquire('order');
    backend.disturb(refused, 'renew');
    Object.defineProperty(backend, 'connectionError', { value: new Error('ECONNREFUSED') });
    const error = await errorOf(lease.extend('1m'));
    const why = "The lease of 'order' could not be extended: the connection is closed (ECONNREFUSED)";
    expect(error).toMatchObject({ message: why, lockName: 'order', cause: { name: 'BackendError' } });
    await lease.release();
  });

  it('with onLost: warn reports a loss in the log, with its reason', async () => {
    const { locks, runtime, logger } = await world.process({ onLost: 'warn' });
    const lease = await locks.acquire('order', { leaseTime: '1s' });
    runtime.block(1_000);
    await lease.release();
    expect(logger.warnings).toEqual([expect.stringContaining("The lock 'order' was lost: its lease ended")]);
  });
});
