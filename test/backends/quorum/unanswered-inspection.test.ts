import { BackendError } from '../../../lib/backends/lock-backend.js';
import { QuorumBackend } from '../../../lib/backends/quorum/quorum-backend.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import type { LockLease } from '../../../lib/engine/lease/lock-lease.js';
import { LockEngine } from '../../../lib/engine/lock-engine.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import { ms, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { refused, WatchedBackend } from '../../support/watched/watched-backend.js';

const KEY = 'lock:order';

describe('a lock that its holder has on two of three nodes, while one of these two does not answer', () => {
  /** The first node has given the lock to an attempt that found no majority. The last one does not answer. */
  async function open(options: { leaseTime?: number } = {}) {
    const runtime = new VirtualRuntime();
    const nodes = Array.from(
      { length: 3 },
      () => new WatchedBackend(new MemoryBackend({ runtime, store: new MemoryStore() }), runtime),
    );
    const locks = new LockService(
      new LockEngine({
        ...ENGINE_DEFAULTS,
        backend: new QuorumBackend({ nodes, runtime }),
        runtime,
        logger: new RecordingLogger(),
        clientId: 'own',
        watchdogTimeout: ms(30_000),
        waiterTimeout: ms(5_000),
        shutdownTimeout: ms(100),
      }),
    );
    const failed = { type: 'reentrant', owner: 'other:1', leaseTime: 60_000, reserve: 0, waiterTimeout: 0 } as const;
    await nodes[0].acquire({ key: KEY, ...failed });
    const lease = (await runtime.until(locks.acquire('order', options))) as LockLease;
    nodes[2].disturb(refused, 'inspect');
    const { forcedReleases, watchdog } = locks.engine.services;
    const [held] = lease.locks;
    const verify = async () => {
      forcedReleases.verify({ key: KEY, owners: [lease.owner] });
      await runtime.advance(1_000);
    };
    return { runtime, nodes, locks, lease, held, watchdog, verify };
  }

  it('is not taken for one that was released by force, until a majority says so', async () => {
    const { runtime, nodes, locks, lease, verify } = await open();
    await verify();
    expect(lease.held).toBe(true);
    await nodes[1].forceRelease(KEY);
    await verify();
    expect(lease.held).toBe(false);
    await runtime.until(locks.close());
  });

  it('is not confirmed, and not lost either, when its fixed lease is looked up', async () => {
    const { runtime, nodes, locks, lease, held, watchdog } = await open({ leaseTime: 20_000 });
    const answer = await runtime.until(watchdog.confirmNow(held).catch((error: Error) => error));
    expect(answer).toBeInstanceOf(BackendError);
    expect(answer).toMatchObject({ kind: 'unavailable', message: expect.stringMatching(/too few nodes answered/) });
    expect(lease.held).toBe(true);
    nodes[2].heal();
    await runtime.until(watchdog.confirmNow(held));
    expect(lease.held).toBe(true);
    await runtime.until(locks.close());
  });
});
