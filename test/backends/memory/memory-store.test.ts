import { AsyncLocalStorage } from 'node:async_hooks';
import type { Acquired, LockType, Removal } from '../../../lib/backends/lock-backend.js';
import { ExpiringMap, isPast } from '../../../lib/backends/memory/expiring-map.js';
import { MemoryBackend } from '../../../lib/backends/memory/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/memory/memory-store.js';
import type { Runtime } from '../../../lib/backends/runtime.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';

/** A runtime whose time stands still until it is moved, and that has no timers. */
class StillRuntime implements Runtime {
  now = 0;
  today = Date.parse('2025-01-01');
  monotonic = () => this.now;
  wall = () => this.today;
  random = () => 0.5;
  uuid = nodeRuntime.uuid;
  detached = <T>(work: () => T) => work();
  timer = () => {
    throw new Error('the memory backend started a timer');
  };
  nextTurn = this.timer;

  advance(time: number): void {
    this.now += time;
    this.today += time;
  }
}

describe('MemoryStore', () => {
  const runtime = new StillRuntime();
  let store = new MemoryStore();
  let backend = new MemoryBackend({ runtime, store });
  let count = 0;

  beforeEach(() => {
    store = new MemoryStore();
    backend = new MemoryBackend({ runtime, store });
  });

  const acquire = (key: string, type: LockType = 'reentrant', leaseTime = 1_000, from = backend) =>
    from.acquire({
      key,
      type,
      owner: `client:${++count}`,
      leaseTime,
      reserve: 0,
      waiterTimeout: type === 'fair' || type === 'write' ? 1_000 : 0,
    });

  it('counts an owner without a colon as its own client', async () => {
    const heard: Removal[] = [];
    const subscription = backend.listenToClient('script', (removal) => heard.push(removal));
    await backend.acquire({
      key: 'order',
      type: 'reentrant',
      owner: 'script',
      leaseTime: 1_000,
      reserve: 0,
      waiterTimeout: 0,
    });
    await backend.forceRelease('order');
    await Promise.resolve();
    expect(heard).toEqual([{ key: 'order', owners: ['script'] }]);
    subscription.close();
  });

  it('measures leases by the runtime and starts no timer', async () => {
    await acquire('order', 'reentrant', 1_000);
    runtime.advance(999);
    expect(await acquire('order')).toMatchObject({ acquired: false, remaining: 1 });
    runtime.advance(1);
    expect(await acquire('order')).toMatchObject({ acquired: true });
  });

  it('measures leases by its own clock if it has one', async () => {
    const clock = new StillRuntime();
    const shared = new MemoryStore(clock);
    await acquire('order', 'reentrant', 1_000, new MemoryBackend({ runtime, store: shared }));
    runtime.advance(10_000);
    const other = new MemoryBackend({ runtime: new StillRuntime(), store: shared });
    expect(await acquire('order', 'reentrant', 1_000, other)).toMatchObject({ acquired: false, remaining: 1_000 });
    clock.advance(1_000);
    expect(await acquire('order', 'reentrant', 1_000, other)).toMatchObject({ acquired: true });
  });

  it('is shared by all backends of the process unless another one is given', async () => {
    const [one, two] = [new MemoryBackend({ runtime }), new MemoryBackend({ runtime })];
    await acquire('shared', 'reentrant', 1_000, one);
    expect(await acquire('shared', 'reentrant', 1_000, two)).toMatchObject({ acquired: false });
    expect(await acquire('shared')).toMatchObject({ acquired: true });
  });

  it.each(['reentrant', 'fair', 'read', 'write', 'fenced'] as const)(
    'drops expired %s locks that nobody asks for again',
    async (type) => {
      for (let n = 0; n < 10_000; n++) {
        await acquire(`order:${n}`, type);
        runtime.advance(10);
      }
      expect(store.locks.size).toBeLessThan(400); // 100 are alive at any time
    },
  );

  it('removes dead waiters of one lock or of many locks', async () => {
    await acquire('held', 'fair', 10_000_000);
    await acquire('read', 'read', 10_000_000);
    for (let n = 0; n < 5_000; n++) {
      await acquire('held', 'fair');
      await acquire('read', 'write');
      await acquire(`held:${n}`, 'fair');
      await acquire(`held:${n}`, 'fair');
      await acquire(`read:${n}`, 'read');
      await acquire(`read:${n}`, 'write');
      runtime.advance(10);
    }
    expect(store.fairWaiters.size).toBeLessThan(400);
    expect(store.lines.size).toBeLessThan(400);
    expect((await backend.inspect('held')).queue).toHaveLength(99);
  });

  it('keeps no data of a released lock', async () => {
    for (const type of ['reentrant', 'fair', 'read', 'write'] as const) {
      const holding = { key: 'order', type, owner: 'client:1' };
      const waiting = { key: 'order', type, owner: 'client:2' };
      const terms = { leaseTime: 1_000, reserve: 0, waiterTimeout: 1_000 };
      await backend.acquire({ ...holding, ...terms });
      if (type !== 'read') await backend.acquire({ ...waiting, ...terms });
      await backend.release(holding);
      await backend.removeWaiter(waiting);
    }
    expect([store.locks.size, store.fairWaiters.size, store.lines.size]).toEqual([0, 0, 0]);
  });

  it.each(['reentrant', 'fenced'] as const)(
    'gives growing tokens of %s locks when the clock was set back, even of locks that were forgotten long ago',
    async (type) => {
      const before = (await acquire('order', type, 1)) as Acquired;
      runtime.advance(10 * 60_000);
      for (let n = 0; n < 100; n++) await acquire(`other:${n}`, type, 1);
      runtime.today -= 60 * 60_000;
      const after = (await acquire('order', type)) as Acquired;
      expect(after.token).toBeGreaterThan(before.token);
      runtime.today += 50 * 60_000;
    },
  );

  it('remembers the token of a fenced lock for as long as it is held', async () => {
    const { token } = (await acquire('order', 'fenced', 10 * 60_000)) as Acquired;
    runtime.advance(9 * 60_000);
    for (let n = 0; n < 100; n++) await acquire(`other:${n}`, 'fenced', 1);
    expect((await backend.inspect('order')).token).toBe(token);
  });

  it("wakes waiters after the release has returned, outside the releaser's scope", async () => {
    const scope = new AsyncLocalStorage<string>();
    const real = new MemoryBackend({ runtime: { ...nodeRuntime, detached: (work) => scope.exit(work) }, store });
    const seen: (string | undefined)[] = [];
    real.subscribe('order', 'reentrant', 'client', () => seen.push(scope.getStore()));
    const holding = { key: 'order', type: 'reentrant', owner: 'client:1' } as const;
    await real.acquire({ ...holding, leaseTime: 1_000, reserve: 0, waiterTimeout: 0 });
    await scope.run('releasing', async () => {
      const released = real.release(holding);
      expect(seen).toEqual([]);
      await released;
    });
    expect(seen).toEqual([undefined]);
  });
});

describe('ExpiringMap', () => {
  it('stays within a small multiple of its live entries', () => {
    const map = new ExpiringMap<number>(isPast);
    let most = 0;
    for (let now = 0; now < 20_000; now++) {
      map.set(`${now}`, now + 100, now);
      most = Math.max(most, map.size);
    }
    expect(most).toBeLessThan(400);
  });

  it('removes no live entry', () => {
    const map = new ExpiringMap<number>(isPast);
    for (let now = 0; now < 10_000; now++) map.set(`${now}`, now % 2 === 0 ? 50_000 : now + 1, now);
    expect(map.alive(20_000)).toHaveLength(5_000);
    expect(map.size).toBeLessThan(10_000);
  });
});
