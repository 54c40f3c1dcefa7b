import { setTimeout as sleep } from 'node:timers/promises';
import { BackendError } from '../../../lib/backends/lock-backend.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openWorld, STORES } from '../../support/lock-world.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { until } from '../../support/until.js';
import { answerLost, type Disturbance, refused } from '../../support/watched/watched-backend.js';
import type { SynchronizerCommand } from '../../support/watched/watched-synchronizers.js';

/** A call during which answers get lost, and the state that must result. */
const SCENES: readonly {
  readonly what: string;
  prepare?(locks: LockService): Promise<unknown>;
  work(locks: LockService): Promise<unknown>;
  state(locks: LockService): Promise<unknown>;
  readonly answer?: unknown;
  readonly after: unknown;
}[] = [
  {
    what: 'acquire()',
    prepare: (locks) => locks.getSemaphore('mail').trySetPermits(5),
    work: (locks) => locks.getSemaphore('mail').acquire(2),
    state: (locks) => locks.getSemaphore('mail').availablePermits(),
    after: 3,
  },
  {
    what: 'release()',
    work: (locks) => locks.getSemaphore('mail').release(2),
    state: (locks) => locks.getSemaphore('mail').availablePermits(),
    after: 2,
  },
  {
    what: 'drainPermits()',
    prepare: (locks) => locks.getSemaphore('mail').trySetPermits(5),
    work: (locks) => locks.getSemaphore('mail').drainPermits(),
    answer: 5,
    state: (locks) => locks.getSemaphore('mail').availablePermits(),
    after: 0,
  },
  {
    what: 'trySetPermits()',
    work: (locks) => locks.getSemaphore('mail').trySetPermits(5),
    answer: true,
    state: (locks) => locks.getSemaphore('mail').availablePermits(),
    after: 5,
  },
  {
    what: 'acquire() of a permit with an id',
    prepare: (locks) => locks.getPermitExpirableSemaphore('mail').trySetPermits(5),
    work: (locks) => locks.getPermitExpirableSemaphore('mail').acquireMany(2),
    answer: [expect.any(String), expect.any(String)],
    state: (locks) => locks.getPermitExpirableSemaphore('mail').availablePermits(),
    after: 3,
  },
  {
    what: 'release() of a permit with an id',
    prepare: async (locks) => {
      const semaphore = locks.getPermitExpirableSemaphore('mail');
      await semaphore.trySetPermits(2);
      ids.set(locks, await semaphore.acquire());
    },
    work: (locks) => locks.getPermitExpirableSemaphore('mail').release(ids.get(locks) as string),
    state: (locks) => locks.getPermitExpirableSemaphore('mail').availablePermits(),
    after: 2,
  },
  {
    what: 'countDown()',
    prepare: (locks) => locks.getCountDownLatch('done').trySetCount(5),
    work: (locks) => locks.getCountDownLatch('done').countDown(),
    state: (locks) => locks.getCountDownLatch('done').getCount(),
    after: 4,
  },
];
const ids = new WeakMap<LockService, string>();

/** Executes the first `count` commands and loses their answers. */
const firstAnswersLost = (count: number): Disturbance => {
  let left = count;
  return (execute, request) => (left-- > 0 ? answerLost(execute, request) : execute());
};

describe.each(STORES)('lost answers, in %s', (store) => {
  const world = openWorld(store);

  it.each(SCENES)('$what takes effect once when the backend is asked again', async (scene) => {
    const { locks, backend } = await world.process();
    await scene.prepare?.(locks);
    const watched = backend.synchronizerRequests;
    const commands = ['takePermits', 'addPermits', 'drainPermits', 'trySetPermits'] as const;
    const others = ['takeLeasedPermits', 'giveLeasedPermits', 'countDown'] as const;
    watched.disturb(firstAnswersLost(3), ...commands, ...others);
    const before = watched.commands.length;
    expect(await scene.work(locks)).toEqual(scene.answer);
    expect(watched.commands).toHaveLength(before + 4);
    expect(await scene.state(locks)).toBe(scene.after);
  });

  it('releases permits whose answer came after their caller had left', async () => {
    const { locks, backend, runtime } = await world.process();
    const [counted, leased] = [locks.getSemaphore('mail'), locks.getPermitExpirableSemaphore('licences')];
    await counted.trySetPermits(1);
    await leased.trySetPermits(1);
    const watched = backend.synchronizerRequests;
    watched.disturb(answerLost, 'takePermits', 'takeLeasedPermits');
    const unavailable = { name: 'LockUnavailableError' };
    await expect(counted.tryAcquire()).rejects.toMatchObject(unavailable);
    await expect(counted.tryAcquire(1, 50)).rejects.toMatchObject(unavailable);
    await expect(leased.tryAcquire()).rejects.toMatchObject(unavailable);
    await expect(leased.tryAcquire(50)).rejects.toMatchObject(unavailable);
    expect([await counted.availablePermits(), await leased.availablePermits()]).toEqual([0, 0]);
    watched.heal();
    await until(async () => (await counted.availablePermits()) === 1 && (await leased.availablePermits()) === 1);
    await until(() => runtime.timers === 0);
    expect(watched.subscriptions).toBe(0);
  });

  it('gives permits whose answer was lost to a caller that still waits', async () => {
    const { locks, backend } = await world.process();
    const semaphore = locks.getSemaphore('mail');
    await semaphore.trySetPermits(2);
    const watched = backend.synchronizerRequests;
    watched.disturb(answerLost, 'takePermits');
    const acquired = [semaphore.acquire(), semaphore.acquire()];
    await until(() => watched.count('takePermits') > 2);
    watched.heal();
    await Promise.all(acquired);
    expect(await semaphore.availablePermits()).toBe(0);
  });

  it('does not give back a permit that was granted after an answer that came too late', async () => {
    const { locks, backend } = await world.process();
    const semaphore = locks.getPermitExpirableSemaphore('mail');
    await semaphore.trySetPermits(1);
    const watched = backend.synchronizerRequests;
    let attempts = 0;
    const lostThenLate: Disturbance = async (execute, request) => {
      attempts++;
      if (attempts === 1) return answerLost(execute, request);
      if (attempts > 2) return execute();
      await sleep(2_400);
      const reply = await execute();
      await sleep(750); // later than the lease of 3 s since the attempt began
      return reply;
    };
    watched.disturb(lostThenLate, 'takeLeasedPermits');
    watched.disturb(async (execute) => {
      await until(() => attempts > 2);
      await sleep(100); // the next attempt is answered first
      return execute();
    }, 'giveLeasedPermits');
    const permit = await semaphore.acquire(3_000);
    watched.heal();
    await sleep(200);
    await semaphore.release(permit);
    expect(await semaphore.availablePermits()).toBe(1);
  });

  it.each<[string, SynchronizerCommand, (locks: LockService) => Promise<() => Promise<unknown>>]>([
    [
      'counted permits',
      'takePermits',
      async (locks) => {
        const semaphore = locks.getSemaphore('mail');
        await semaphore.trySetPermits(1);
        await semaphore.acquire();
        return () => semaphore.release();
      },
    ],
    [
      'permits with ids',
      'takeLeasedPermits',
      async (locks) => {
        const semaphore = locks.getPermitExpirableSemaphore('mail');
        await semaphore.trySetPermits(1);
        const id = await semaphore.acquire();
        return () => semaphore.release(id);
      },
    ],
  ])(
    'takes nothing when a request arrives after it was repeated in vain and its caller has left: %s',
    async (_, command, take) => {
      const { locks, backend } = await world.process();
      const giveBack = await take(locks);
      const watched = backend.synchronizerRequests;
      const late: (() => Promise<unknown>)[] = [];
      watched.disturb(async (execute) => {
        if (late.length > 0) return execute();
        late.push(execute);
        throw new BackendError('no answer in time', 'unavailable', 'unknown');
      }, command);
      const semaphore =
        command === 'takePermits'
          ? locks.getSemaphore('mail').tryAcquire(1, 1_000)
          : locks.getPermitExpirableSemaphore('mail').tryAcquire(1_000);
      expect(Boolean(await semaphore)).toBe(false);
      expect(watched.count(command)).toBeGreaterThan(2);
      await giveBack();
      await late[0]();
      expect(await locks.getSemaphore('mail').availablePermits()).toBe(1);
    },
  );

  it('sends nothing more for a caller that left when nothing was executed', async () => {
    const { locks, backend, runtime } = await world.process();
    const watched = backend.synchronizerRequests;
    watched.disturb(refused, 'takePermits', 'getCount');
    await expect(locks.getSemaphore('mail').tryAcquire()).rejects.toMatchObject({ name: 'LockUnavailableError' });
    await expect(locks.getCountDownLatch('done').await(50)).rejects.toMatchObject({ name: 'LockUnavailableError' });
    expect([runtime.timers, watched.subscriptions]).toEqual([0, 0]);
  });
});

describe('answers that a broken connection lost', () => {
  const world = openWorld('Redis');
  let proxy: TcpProxy;
  beforeAll(async () => {
    proxy = await startTcpProxy(world.redis.port);
  });
  afterEach(() => proxy.heal());
  afterAll(() => proxy.stop());

  it.each(SCENES)('$what takes effect once when the client sends it again', async (scene) => {
    const locks = await world.service({ connection: proxy.url, commandTimeout: 5_000 });
    await scene.prepare?.(locks);
    const lost = proxy.droppedReplies;
    proxy.dropReplies({ after: /evalsha/i, close: true });
    const worked = scene.work(locks);
    await until(() => proxy.droppedReplies > lost);
    await proxy.heal();
    expect(await worked).toEqual(scene.answer);
    expect(await scene.state(locks)).toBe(scene.after);
  });

  it.each(SCENES)('$what takes effect once when its answer came too late', async (scene) => {
    const locks = await world.service({ connection: proxy.url, commandTimeout: 500 });
    await scene.prepare?.(locks);
    const lost = proxy.droppedReplies;
    proxy.dropReplies({ after: /evalsha/i });
    const worked = scene.work(locks);
    await until(() => proxy.droppedReplies > lost + 1);
    await proxy.heal();
    expect(await worked).toEqual(scene.answer);
    expect(await scene.state(locks)).toBe(scene.after);
  });
});
