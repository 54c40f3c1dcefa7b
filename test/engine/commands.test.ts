import type { LockOptions } from '../../lib/engine/terms/lock-options.js';
import { ms, openVirtualWorld, type VirtualProcess } from '../support/lock-world.js';
import { errorOf } from '../support/section.js';

interface Scene {
  readonly ann: VirtualProcess;
  /** Another process. */
  readonly bob: VirtualProcess;
  pass(milliseconds: number): Promise<void>;
}

type Situation = readonly [
  what: string,
  /** What the backend is asked, and whether subscriptions are opened. */
  cost: string,
  /** What is done first. @returns what the cost is of, to ann's process */
  act: (scene: Scene) => Promise<() => Promise<unknown>>,
];

const nothing = async () => {};
const LEASE = ms(30_000);

const once =
  (act: (scene: Scene) => Promise<unknown>): Situation[2] =>
  async (scene) =>
  () =>
    act(scene);

const withOptions = (options: LockOptions) => once(({ ann }) => ann.locks.withLock('order', options, nothing));

/** Bob holds the lock, and ann waits for it. */
const waiting = async ({ ann, bob }: Scene, options: LockOptions = {}) => {
  const held = await bob.locks.acquire('order', options);
  const waits = ann.locks.acquire('order', options);
  waits.catch(nothing); // some wait until the service closes
  await ann.runtime.settle();
  return { held, waits };
};

const SITUATIONS: readonly Situation[] = [
  ['a free lock, and its release', 'acquire, release', withOptions({})],
  ['a free fair lock', 'acquire, release', withOptions({ type: 'fair' })],
  ['a free read lock', 'acquire, release', withOptions({ type: 'read' })],
  ['a free write lock', 'acquire, release', withOptions({ type: 'write' })],
  ['a free fenced lock', 'acquire, release', withOptions({ type: 'fenced' })],
  ['one of several permits of a lock', 'acquire, release', withOptions({ permits: 3 })],
  ['several locks', 'acquireAll, 3 × release', once(({ ann }) => ann.locks.withLock(['a', 'b', 'c'], nothing))],
  [
    'several fair locks',
    '2 × acquire, 2 × release',
    once(({ ann }) => ann.locks.withLock(['a', 'b'], { type: 'fair' }, nothing)),
  ],
  [
    'a re-entry',
    'acquire, release',
    once(({ ann }) => ann.locks.withLock('order', () => ann.locks.withLock('order', nothing))),
  ],
  [
    'a re-entry for several locks of which one is held',
    '2 × acquire, 2 × release',
    once(({ ann }) => ann.locks.withLock('order', () => ann.locks.withLock(['order', 'stock'], nothing))),
  ],
  [
    'a read lock in the write lock',
    '2 × acquire, 2 × release',
    once(({ ann }) => {
      const type = { type: 'read' } as const;
      return ann.locks.withLock('order', { type: 'write' }, () => ann.locks.withLock('order', type, nothing));
    }),
  ],
  [
    'a try that gets the lock',
    'acquire, release',
    once(async ({ ann }) => (await ann.locks.tryAcquire('order'))?.release()),
  ],
  [
    'a try while another process holds the lock',
    'acquire',
    async ({ ann, bob }) => {
      await bob.locks.acquire('order');
      return () => ann.locks.tryAcquire('order');
    },
  ],
  [
    'a try while this process holds the lock',
    '',
    async ({ ann }) => {
      await ann.locks.acquire('order');
      return () => ann.locks.tryAcquire('order');
    },
  ],
  [
    'a signal that was aborted before',
    '',
    once(({ ann }) => errorOf(ann.locks.acquire('order', { signal: AbortSignal.abort() }))),
  ],
  ['a wait for another process', '2 × acquire, subscribe', once((scene) => waiting(scene))],
  [
    'a wait for another process, and a minute',
    '3 × acquire, 36 × refreshWaiters, 20 × ping, subscribe',
    once(async (scene) => {
      await waiting(scene);
      await scene.pass(60_000);
    }),
  ],
  [
    'a wait for a fair lock of another process, and a minute',
    '4 × acquire, 36 × refreshWaiters, 20 × ping, subscribe',
    once(async (scene) => {
      await waiting(scene, { type: 'fair' });
      await scene.pass(60_000);
    }),
  ],
  [
    'several locks of which one is held by another process for a minute',
    '36 × refreshWaiters, 20 × ping, acquire, acquireAll, 3 × release',
    async ({ ann, bob, pass }) => {
      const held = await bob.locks.acquire('b');
      const several = ann.locks.withLock(['a', 'b', 'c'], nothing);
      several.catch(nothing);
      return async () => {
        await pass(60_000);
        await held.release();
        await pass(100);
      };
    },
  ],
  [
    'a hundred callers behind one that waits',
    '',
    async (scene) => {
      await waiting(scene);
      return async () => {
        for (let i = 0; i < 100; i++) void scene.ann.locks.acquire('order').catch(nothing);
        await scene.ann.runtime.settle();
      };
    },
  ],
  ...(['reentrant', 'fair', 'read', 'write'] as const).map(
    (type): Situation => [
      `the lock of another process that is released: ${type}`,
      { reentrant: 'release', fair: 'acquire, release', read: '2 × acquire, 2 × release', write: 'acquire, release' }[
        type
      ],
      async (scene) => {
        const { held, waits } = await waiting(scene, { type: type === 'read' ? 'write' : type });
        const reader = type === 'read' ? scene.ann.locks.acquire('order', { type }) : undefined;
        await scene.ann.runtime.settle();
        return async () => {
          await held.release();
          await (await waits).release();
          await (await reader)?.release();
        };
      },
    ],
  ),
  [
    'a lock that one caller after another of this process has',
    'transfer, release',
    async ({ ann }) => {
      const first = await ann.locks.acquire('order');
      const others = Array.from({ length: 20 }, () => ann.locks.withLock('order', nothing));
      return async () => {
        await first.release();
        await Promise.all(others);
      };
    },
  ],
  [
    'a fixed lease after another one',
    'transfer, release',
    async ({ ann }) => {
      const options = { leaseTime: LEASE };
      const first = await ann.locks.acquire('order', options);
      const second = ann.locks.acquire('order', options);
      return async () => {
        await first.release();
        await (await second).release();
      };
    },
  ],
  [
    'a lease that another caller of this process waits for, and that has ended',
    '2 × acquire, subscribe',
    async ({ ann, pass }) => {
      await ann.locks.acquire('order', { leaseTime: '1s' });
      void ann.locks.acquire('order').catch(nothing);
      return () => pass(1_000);
    },
  ],
  [
    'a caller that leaves, with its place',
    'removeWaiter',
    async ({ ann, bob }) => {
      await bob.locks.acquire('order');
      const abort = new AbortController();
      const left = errorOf(ann.locks.acquire('order', { signal: abort.signal }));
      await ann.runtime.settle();
      return async () => {
        abort.abort();
        await left;
        await ann.runtime.settle();
      };
    },
  ],
  [
    'a minute in which a lock is held',
    '6 × renew',
    async ({ ann, pass }) => {
      await ann.locks.acquire('order');
      return () => pass(60_000);
    },
  ],
  [
    'a minute in which a fixed lease lasts',
    '',
    async ({ ann, pass }) => {
      await ann.locks.acquire('order', { leaseTime: '2m' });
      return () => pass(60_000);
    },
  ],
  [
    'an extension, and the time of a lease after it',
    'renew',
    async ({ ann, pass }) => {
      const lease = await ann.locks.acquire('order');
      return async () => {
        await lease.extend('1m');
        await pass(LEASE);
      };
    },
  ],
  [
    'a lock that is detached and adopted',
    'transfer, adopt, release',
    async ({ ann }) => {
      const lease = await ann.locks.acquire('order');
      return async () => (await ann.locks.adopt(await lease.detach({ for: '1m' }))).release();
    },
  ],
  [
    'a forced release of a lock that this process holds',
    'forceRelease, inspect',
    async ({ ann }) => {
      await ann.locks.acquire('order');
      return () => ann.locks.forceRelease('order');
    },
  ],
  [
    'callers of whom only the newest waits',
    '3 × acquire, removeWaiter, subscribe',
    async ({ ann, bob }) => {
      await bob.locks.acquire('order');
      return async () => {
        for (let i = 0; i < 20; i++) void ann.locks.withLock('order', { newest: true }, nothing).catch(nothing);
        await ann.runtime.settle();
      };
    },
  ],
  ['a single flight', 'acquire, release', once(({ ann }) => ann.locks.singleFlight('price', async () => 7))],
  [
    'a single flight for a hundred callers of its process',
    'acquire, inspect, release',
    once(({ ann }) => Promise.all(Array.from({ length: 100 }, () => ann.locks.singleFlight('price', async () => 7)))),
  ],
  [
    'the permits of a semaphore for a hundred callers, and their release',
    '3 × takePermits, 2 × addPermits',
    async ({ ann }) => {
      await ann.locks.getSemaphore('mail').trySetPermits(100);
      const semaphore = ann.locks.getSemaphore('mail');
      return async () => {
        await Promise.all(Array.from({ length: 100 }, () => semaphore.acquire()));
        await Promise.all(Array.from({ length: 100 }, () => semaphore.release()));
      };
    },
  ],
  [
    'a minute in which a hundred callers wait for a semaphore',
    '20 × ping, 2 × takePermits, inspect',
    async ({ ann, pass }) => {
      await ann.locks.getSemaphore('mail').trySetPermits(0);
      return async () => {
        for (let i = 0; i < 100; i++) void ann.locks.getSemaphore('mail').acquire().catch(nothing);
        await pass(60_000);
      };
    },
  ],
  [
    'a minute in which ten permits with ids are renewed',
    '6 × renewPermits',
    async ({ ann, pass }) => {
      const semaphore = ann.locks.getPermitExpirableSemaphore('mail');
      await semaphore.trySetPermits(10);
      await semaphore.acquireMany(10);
      return () => pass(60_000);
    },
  ],
  [
    'a latch that opens for ten callers',
    'getCount',
    async ({ ann, bob }) => {
      const latch = ann.locks.getCountDownLatch('ready');
      await latch.trySetCount(1);
      const waiting = Array.from({ length: 10 }, () => latch.await());
      await ann.runtime.settle();
      return async () => {
        await bob.locks.getCountDownLatch('ready').countDown();
        await Promise.all(waiting);
      };
    },
  ],
];

/** `acquire, 2 × release`. */
function inWords(commands: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const command of commands) counts.set(command, (counts.get(command) ?? 0) + 1);
  return [...counts].map(([command, count]) => (count === 1 ? command : `${count} × ${command}`)).join(', ');
}

describe('what each situation costs', () => {
  const world = openVirtualWorld();

  it.each(SITUATIONS)('%s: %s', async (_, cost, act) => {
    const [ann, bob] = [await world.process({ watchdogTimeout: LEASE }), await world.process()];
    const { backend, runtime } = ann;
    const { synchronizerRequests } = backend;
    // A first lock lets the process listen for forced releases, which it does once.
    await ann.locks.withLock('first', () => runtime.advance(1_000));
    const measured = await act({ ann, bob, pass: (time) => runtime.advance(time) });
    await runtime.settle();
    const [asked, requested, subscribed] = [backend.count(), synchronizerRequests.commands.length, backend.subscribed];
    await measured();
    await runtime.settle();
    const commands: string[] = [...backend.commands.slice(asked), ...synchronizerRequests.commands.slice(requested)];
    const opened = backend.subscribed - subscribed;
    if (opened > 0) commands.push('subscribe');
    expect(inWords(commands)).toBe(cost);
  });
});
