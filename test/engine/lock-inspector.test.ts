import { BackendError } from '../../lib/backends/lock-backend.js';
import { LockKeyError, LockLostError, LockUnavailableError } from '../../lib/engine/errors.js';
import { openVirtualWorld } from '../support/lock-world.js';
import { errorOf, latch } from '../support/section.js';
import { answerAfter, type Disturbance, refused } from '../support/watched/watched-backend.js';

describe('a question about a lock', () => {
  const world = openVirtualWorld();

  const open = async () => {
    const process = await world.process();
    return { ...process, inspector: process.locks.engine.inspector };
  };
  const failing =
    (kind: BackendError['kind']): Disturbance =>
    async () => {
      throw new BackendError('no usable answer', kind, 'refused');
    };

  it('waits for the answers to releases that are under way, of this lock only', async () => {
    const { locks, backend, runtime, inspector } = await open();
    const [order, stock] = [await locks.acquire('order'), await locks.acquire('stock')];
    const answer = latch();
    backend.disturb(async (execute) => {
      await answer.promise;
      return execute();
    }, 'release');
    const released = [order.release(), stock.release()];
    const modes: string[] = [];
    const asked = inspector.inspect('order').then(({ mode }) => modes.push(mode));
    await runtime.settle();
    expect([modes, backend.count('inspect')]).toEqual([[], 0]);
    expect((await inspector.inspect('parcel')).mode).toBe('free');
    answer.open();
    await Promise.all([asked, ...released]);
    expect(modes).toEqual(['free']);
  });

  it('has an error of this library instead of the error of the backend', async () => {
    const { backend, inspector } = await open();
    backend.disturb(failing('unavailable'), 'inspect');
    const unavailable = (await errorOf(inspector.inspect('order'))) as LockUnavailableError;
    expect(unavailable).toBeInstanceOf(LockUnavailableError);
    expect(unavailable.message).toBe("The backend gave no answer about the lock 'order': no usable answer");
    expect(unavailable).toMatchObject({ lockName: 'order', cause: expect.any(BackendError) });
    backend.disturb(failing('key'), 'inspect');
    const unusable = (await errorOf(inspector.inspect('order'))) as LockKeyError;
    expect(unusable).toBeInstanceOf(LockKeyError);
    expect(unusable.message).toBe("The lock 'order' cannot be used: no usable answer");
    expect(unusable).toMatchObject({ lockName: 'order', cause: expect.any(BackendError) });
  });

  it('is refused for a name that is not valid', async () => {
    const { backend, inspector } = await open();
    for (const ask of [inspector.inspect(''), inspector.forgetResult(''), inspector.inspectSynchronizer('')])
      expect(await errorOf(ask)).toBeInstanceOf(LockKeyError);
    expect(backend.count()).toBe(0);
  });

  it('that concerns no single lock names the call in its error', async () => {
    const { inspector } = await open();
    expect(await inspector.askBackend('list()', async () => ['order'])).toEqual(['order']);
    const error = await errorOf(inspector.askBackend('list()', () => refused(async () => {}, undefined)));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toBe('list(): the backend gave no answer: the connection is closed');
    expect(error).toMatchObject({ lockName: '', cause: expect.any(BackendError) });
  });

  it('has no answer where there is no such object, or the backend has none of its kind', async () => {
    const { backend, inspector } = await open();
    expect(await inspector.inspectSynchronizer('done')).toBeUndefined();
    expect(await inspector.inspectResult('prices')).toBeUndefined();
    expect(await inspector.forgetResult('prices')).toBe(false);
    for (const part of ['synchronizers', 'flights']) Object.defineProperty(backend, part, { value: undefined });
    expect(await inspector.inspectSynchronizer('done')).toBeUndefined();
    expect(await inspector.inspectResult('prices')).toBeUndefined();
    expect(await inspector.forgetResult('prices')).toBe(false);
  });

  it('finds a semaphore, and the result of a single flight, until it is forgotten', async () => {
    const { locks, inspector } = await open();
    await locks.getSemaphore('printers').trySetPermits(3);
    expect(await inspector.inspectSynchronizer('printers')).toBeDefined();
    await locks.singleFlight('prices', { keepFor: '1m' } as never, async () => 1);
    expect(await inspector.inspectResult('prices')).toBeDefined();
    expect(await inspector.forgetResult('prices')).toBe(true);
    expect(await inspector.forgetResult('prices')).toBe(false);
    expect(await inspector.inspectResult('prices')).toBeUndefined();
  });
});

describe('a lock that is released by force', () => {
  const world = openVirtualWorld();

  it('is lost here at once, and its owners are named', async () => {
    const { locks } = await world.process();
    const lease = await locks.acquire('order');
    const { signal } = lease;
    expect(await locks.engine.inspector.forceRelease('order')).toEqual([lease.owner]);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(await locks.engine.inspector.forceRelease('order')).toEqual([]);
  });

  it('stays with an owner that was not expected', async () => {
    const { locks } = await world.process();
    const lease = await locks.acquire('order');
    const { inspector } = locks.engine;
    expect(await inspector.forceRelease('order', { owners: ['somebody else'] })).toEqual([]);
    expect(lease.held).toBe(true);
    expect(await inspector.forceRelease('order', { owners: [lease.owner] })).toEqual([lease.owner]);
    expect(lease.held).toBe(false);
  });

  it('is granted to nobody whose request was under way', async () => {
    const { locks, backend, runtime } = await world.process();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const waiting = locks.acquire('order');
    await runtime.settle();
    const [owner] = await locks.engine.inspector.forceRelease('order');
    backend.heal();
    answer.open();
    const lease = await runtime.until(waiting);
    expect(lease.owner).not.toBe(owner);
    await lease.release();
  });

  it('is reported to the queues of this process that have its name, and to no others', async () => {
    const { locks } = await world.process();
    const { queues } = locks.engine.services.work;
    const told: (readonly string[])[] = [];
    const queueOf = (name: string) =>
      ({
        type: 'reentrant',
        name,
        holders: [],
        callers: { isEmpty: true, isIdle: true },
        endIfIdle: () => queues.remove(mine),
        removed: (owners: readonly string[]) => told.push(owners),
      }) as unknown as Parameters<typeof queues.add>[0];
    const mine = queueOf('order');
    const other = { ...queueOf('stock'), endIfIdle: () => queues.remove(other) };
    queues.add(mine);
    queues.add(other);
    const { owner } = await (await world.process()).locks.acquire('order');
    await locks.engine.inspector.forceRelease('order');
    expect(told).toEqual([[owner]]);
    for (const queue of [mine, other]) queues.remove(queue);
  });
});

describe('the holder of a lock, by its owner id', () => {
  const world = openVirtualWorld();
  const identity = { application: 'shop', host: 'web-1', pid: 7, version: '1.0' };

  it('is described if it belongs to this service and holds the lock', async () => {
    const { locks, runtime } = await world.process({ identity });
    const other = await world.process();
    await runtime.advance(100);
    const [mine, theirs] = [await locks.acquire('order', { group: 'payments' }), await other.locks.acquire('stock')];
    await runtime.advance(250);
    const { inspector, services } = locks.engine;
    expect(inspector.ownHolder(services.keyOf('order'), mine.owner)).toMatchObject({
      ...identity,
      group: 'payments',
      heldFor: 250,
    });
    expect(inspector.ownHolder(services.keyOf('stock'), mine.owner)).toBeUndefined();
    expect(inspector.ownHolder(services.keyOf('order'), `${services.clientId}:99`)).toBeUndefined();
    expect(inspector.ownHolder(services.keyOf('stock'), theirs.owner)).toBeUndefined();
    await mine.release();
    expect(inspector.ownHolder(services.keyOf('order'), mine.owner)).toBeUndefined();
  });
});
