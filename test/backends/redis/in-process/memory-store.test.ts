import { AsyncLocalStorage } from 'node:async_hooks';
import type { Acquired, LockType } from '../../../../lib/backends/lock-backend.js';
import { MemoryBackend } from '../../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../../lib/backends/redis/in-process/memory-store.js';
import { nodeRuntime } from '../../../../lib/engine/node-runtime.js';
import { VirtualRuntime } from '../../../support/runtime/virtual-runtime.js';

const TYPES: readonly LockType[] = ['reentrant', 'fair', 'read', 'write'];

describe('MemoryStore', () => {
  let runtime = new VirtualRuntime();
  let store = new MemoryStore();
  let backend = new MemoryBackend({ runtime, store });
  let count = 0;

  beforeEach(() => {
    runtime = new VirtualRuntime();
    store = new MemoryStore();
    backend = new MemoryBackend({ runtime, store });
  });
  afterEach(() => backend.close());

  const acquire = (key: string, type: LockType = 'reentrant', leaseTime = 1_000, from = backend) =>
    from.acquire({ key, type, owner: `client:${++count}`, leaseTime, reserve: 0, waiterTimeout: 0 });

  const keys = async () => (await store.server(runtime)).keys;

  it('measures leases by the runtime', async () => {
    await acquire('order', 'reentrant', 1_000);
    await runtime.advance(999);
    expect(await acquire('order')).toMatchObject({ acquired: false, remaining: 1 });
    await runtime.advance(1);
    expect(await acquire('order')).toMatchObject({ acquired: true });
  });

  it('measures leases by its own clock if it has one', async () => {
    const clock = new VirtualRuntime();
    const shared = new MemoryStore(clock);
    await acquire('order', 'reentrant', 1_000, new MemoryBackend({ runtime, store: shared }));
    await runtime.advance(10_000);
    const other = new MemoryBackend({ runtime: new VirtualRuntime(), store: shared });
    expect(await acquire('order', 'reentrant', 1_000, other)).toMatchObject({ acquired: false, remaining: 1_000 });
    await clock.advance(1_000);
    expect(await acquire('order', 'reentrant', 1_000, other)).toMatchObject({ acquired: true });
  });

  it('does not change leases when the wall clock is set', async () => {
    await acquire('order', 'reentrant', 1_000);
    runtime.setWallClock(60 * 60_000);
    expect(await acquire('order')).toMatchObject({ acquired: false, remaining: 1_000 });
    runtime.setWallClock(-2 * 60 * 60_000);
    await runtime.advance(1_000);
    expect(await acquire('order')).toMatchObject({ acquired: true });
  });

  it.each(['reentrant', 'fenced'] as const)(
    'gives growing tokens of %s locks when the clock was set back',
    async (type) => {
      const before = (await acquire('order', type, 1)) as Acquired;
      await runtime.advance(10 * 60_000);
      runtime.setWallClock(-60 * 60_000);
      const after = (await acquire('order', type)) as Acquired;
      expect(after.token).toBeGreaterThan(before.token);
    },
  );

  it('is shared by all backends of the process unless another one is given', async () => {
    const [one, two] = [1, 2].map(() => new MemoryBackend({ runtime: nodeRuntime }));
    await acquire('shared', 'reentrant', 1_000, one);
    expect(await acquire('shared', 'reentrant', 1_000, two)).toMatchObject({ acquired: false });
    expect(await acquire('shared')).toMatchObject({ acquired: true });
    await Promise.all([one?.close(), two?.close()]);
  });

  it.each(TYPES)('drops expired %s locks that nobody asks for again', async (type) => {
    for (let n = 0; n < 10_000; n++) {
      await acquire(`order:${n}`, type);
      runtime.block(10);
    }
    expect((await keys()).size).toBeLessThan(3_000); // 100 are alive at any time
  });

  it('keeps no data of a released lock', async () => {
    for (const type of TYPES) {
      const holding = { key: `order:${type}`, type, owner: 'client:1' };
      const waiting = { ...holding, owner: 'client:2' };
      const terms = { leaseTime: 1_000, reserve: 0, waiterTimeout: 1_000 };
      await backend.acquire({ ...holding, ...terms });
      if (type !== 'read') await backend.acquire({ ...waiting, ...terms });
      await backend.release(holding);
      await backend.removeWaiter(waiting);
    }
    expect((await keys()).keys().filter((key) => key.includes('order:'))).toEqual([]);
  });

  it("wakes waiters after the release has returned, outside the releaser's scope", async () => {
    const scope = new AsyncLocalStorage<string>();
    const real = new MemoryBackend({ runtime: { ...nodeRuntime, detached: (work) => scope.exit(work) }, store });
    const seen: (string | undefined)[] = [];
    await real.subscribe('order', 'reentrant', 'client', () => seen.push(scope.getStore())).ready;
    const holding = { key: 'order', type: 'reentrant', owner: 'client:1' } as const;
    await real.acquire({ ...holding, leaseTime: 1_000, reserve: 0, waiterTimeout: 0 });
    seen.splice(0);
    await scope.run('releasing', async () => {
      const released = real.release(holding);
      expect(seen).toEqual([]);
      await released;
    });
    await new Promise(setImmediate);
    expect(seen).toEqual([undefined]);
    await real.close();
  });
});
