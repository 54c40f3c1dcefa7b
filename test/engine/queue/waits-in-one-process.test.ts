import { leftovers, NOTHING, openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter } from '../../support/watched/watched-backend.js';

describe('a caller that waits for a lock of its own process', () => {
  const world = openVirtualWorld();

  it.each([
    ['read', 'write'],
    ['write', 'read'],
    ['write', 'write'],
  ] as const)('asks nothing: type %s behind type %s', async (wanted, held) => {
    const { locks, backend, runtime } = await world.process();
    const holding = await locks.acquire('page', { type: held });
    const waiting = locks.acquire('page', { type: wanted });
    await runtime.advance(1_000);
    expect([backend.count('acquire'), backend.subscribed]).toEqual([1, 0]);
    await holding.release();
    await (await runtime.until(waiting)).release();
  });

  it('asks nothing as a writer while one of several readers still reads', async () => {
    const { locks, backend, runtime } = await world.process();
    const reading = [];
    for (let i = 0; i < 3; i++) reading.push(await locks.acquire('page', { type: 'read' }));
    const writing = locks.acquire('page', { type: 'write' });
    for (const reader of [reading[0], reading[2]]) {
      await reader.release();
      await runtime.advance(1_000);
    }
    expect([backend.count('acquire'), backend.subscribed]).toEqual([3, 0]);
    await reading[1].release();
    await (await runtime.until(writing)).release();
  });

  it.each(['together', 'one by one'])(
    'asks nothing while its process acquires the lock with others, %s',
    async (how) => {
      const { locks, backend, runtime } = await world.process();
      if (how === 'one by one') backend.canAcquireTogether = () => false;
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'acquire', 'acquireAll');
      const acquiring = locks.acquire(['cover', 'page']);
      await runtime.settle();
      const waiting = locks.acquire('cover');
      await runtime.settle();
      answer.open();
      const several = await runtime.until(acquiring);
      await runtime.advance(1_000);
      expect([backend.count('acquire'), backend.subscribed]).toEqual([how === 'together' ? 0 : 2, 0]);
      await several.release();
      await (await runtime.until(waiting)).release();
    },
  );
});

describe('a queue of callers', () => {
  const world = openVirtualWorld();

  const expectNothing = async (process: VirtualProcess) => {
    await process.runtime.advance(1_500); // the watchdog finds nothing to do
    expect(leftovers(process)).toEqual(NOTHING);
  };

  it.each(['reentrant', 'fenced', 'read', 'write', 'fair'] as const)(
    'leaves no timer behind when its last caller leaves: type %s',
    async (type) => {
      const [holder, { locks, runtime }] = [await world.process(), await world.process()];
      const held = await holder.locks.acquire('page', { type: type === 'read' ? 'write' : type });
      const { timers } = runtime;
      const leaving = new AbortController();
      const waiting = errorOf(locks.acquire('page', { type, signal: leaving.signal }));
      await runtime.settle();
      expect(runtime.timers).toBeGreaterThan(timers);
      leaving.abort();
      await waiting;
      await runtime.settle();
      expect(runtime.timers).toBe(timers);
      await held.release();
    },
  );

  it('has its next caller wait until a process that heard the release has had its turn', async () => {
    const [first, second] = [await world.process(), await world.process()];
    const { runtime } = world;
    const held = await first.locks.acquire('order');
    const order: string[] = [];
    const theirs = second.locks.withLock('order', () => void order.push('theirs'));
    await runtime.settle();
    second.backend.disturb(async (execute) => {
      await new Promise<void>((resolve) => runtime.timer(3, resolve));
      return execute();
    }, 'acquire');
    await held.release();
    const mine = first.locks.withLock('order', () => void order.push('mine'));
    await runtime.until(Promise.all([theirs, mine]));
    expect(order).toEqual(['theirs', 'mine']);
    await expectNothing(first);
    await expectNothing(second);
  });

  it('serves those that wait for a lock that its process adopts, long before the former lease would end', async () => {
    const [owner, process] = [await world.process(), await world.process()];
    const { locks, runtime } = process;
    const ticket = await (await owner.locks.acquire('order')).detach({ for: '10s' });
    const waiting = locks.acquire('order');
    await runtime.settle();
    const adopted = await locks.adopt(ticket);
    await runtime.advance(100); // longer than the lock may stay in the process
    await adopted.release();
    const lease = await runtime.until(waiting, 100);
    expect(lease.held).toBe(true);
    await lease.release();
    await expectNothing(process);
  });

  it('asks nothing about a lock that its process is detaching', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order');
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'transfer');
    const detaching = lease.detach({ for: '1h' });
    await runtime.settle();
    const waiting = errorOf(locks.acquire('order', { waitTime: 100 }));
    await runtime.advance(50);
    expect(backend.commands).toEqual(['acquire', 'transfer']);
    answer.open();
    const ticket = await detaching;
    expect((await runtime.until(waiting)).name).toBe('LockBusyError');
    await (await locks.adopt(ticket)).release();
  });

  it('has ended once its only lock is detached, and asks the backend again for the next caller', async () => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    const ticket = await (await locks.acquire('order')).detach({ for: '1h' });
    await runtime.settle();
    expect(leftovers(process)).toEqual(NOTHING);
    expect(await locks.tryAcquire('order')).toBeNull();
    expect(backend.count('acquire')).toBe(2);
    await (await locks.adopt(ticket)).release();
  });

  describe('for a fair lock', () => {
    it('is not kept after a caller has left whose request then found the lock busy', async () => {
      const [holder, process] = [await world.process(), await world.process()];
      const { locks, backend, runtime } = process;
      const held = await holder.locks.acquire('order', { type: 'fair' });
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'acquire');
      const abort = new AbortController();
      const leaving = errorOf(locks.acquire('order', { type: 'fair', signal: abort.signal }));
      await runtime.settle();
      abort.abort();
      await leaving;
      answer.open();
      await expectNothing(process);
      expect((await holder.locks.inspect('order')).waiting).toBe(0);
      await held.release();
    });

    it.each(['together', 'one by one'])('is not kept after several were held, and acquired %s', async (how) => {
      const process = await world.process();
      const { locks, backend } = process;
      if (how === 'one by one') backend.canAcquireTogether = () => false;
      await (await locks.acquire(['order', 'stock'], { type: 'fair' })).release();
      await expectNothing(process);
    });

    it('keeps the positions of its callers for as long as they wait', async () => {
      const [holder, { locks, runtime }] = [await world.process(), await world.process()];
      const held = await holder.locks.acquire('order', { type: 'fair' });
      const waiting = [1, 2].map(() => locks.withLock('order', { type: 'fair' }, () => {}));
      await runtime.advance(20_000); // positions that are not refreshed end after 5 s
      expect((await holder.locks.inspect('order')).waiting).toBe(2);
      await held.release();
      await runtime.until(Promise.all(waiting));
    });
  });
});

describe('a wait of over 30 s', () => {
  const world = openVirtualWorld();

  it.each(['reentrant', 'fair', 'read', 'write'] as const)(
    'is reported once, with the holder: type %s',
    async (type) => {
      const [holder, { locks, runtime, logger }] = [await world.process(), await world.process()];
      const held = await holder.locks.acquire('order');
      const waiting = locks.acquire('order', { type });
      await runtime.advance(29_000);
      expect(logger.warnings).toEqual([]);
      await runtime.advance(90_000);
      expect(logger.warnings).toEqual([expect.stringContaining(held.owner)]);
      await held.release();
      await (await runtime.until(waiting)).release();
    },
  );

  it('is not reported when the caller left before', async () => {
    const [holder, process] = [await world.process(), await world.process()];
    const { locks, runtime, logger } = process;
    const held = await holder.locks.acquire('order');
    const waiting = errorOf(locks.acquire('order', { waitTime: '20s' }));
    await runtime.advance(20_000);
    await waiting;
    expect(leftovers(process)).toEqual(NOTHING);
    await runtime.advance(60_000);
    expect(logger.warnings).toEqual([]);
    await held.release();
  });
});
