import { QuorumBackend } from '../../../lib/backends/quorum/quorum-backend.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { NOTHING, openWorld } from '../../support/lock-world.js';

const BAD_COUNTS = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, '3', null, {}] as never[];
const BAD_LEASES = [0, 99, -1, Number.NaN, Number.POSITIVE_INFINITY, 'soon', {}] as never[];
const BAD_WAITS = [-1, Number.NaN, 'soon', {}] as never[];
const BAD_IDS = ['', 'abc', 'g'.repeat(32), '0'.repeat(31), '0'.repeat(33), undefined, null, 7] as never[];

describe('bad input to semaphores and latches', () => {
  const world = openWorld('memory');
  const refused = (message: string) => ({
    name: 'LockConfigurationError',
    message: expect.stringContaining(message),
  });

  const open = async () => {
    const process = await world.process();
    const watched = process.backend.synchronizerRequests;
    const { locks } = process;
    return {
      counted: locks.getSemaphore('mail'),
      leased: locks.getPermitExpirableSemaphore('licences'),
      latch: locks.getCountDownLatch('done'),
      nothingWasAsked: () => expect([watched.commands, process.runtime.timers]).toEqual([[], NOTHING.timers]),
    };
  };

  it.each(BAD_COUNTS)('numbers: %p is refused by a sentence that names the method and the argument', async (bad) => {
    const { counted, leased, latch, nothingWasAsked } = await open();
    for (const method of ['acquire', 'tryAcquire', 'release', 'releaseIfExists', 'trySetPermits'] as const) {
      await expect(counted[method](bad)).rejects.toMatchObject(
        refused(`${method}() of the semaphore 'mail': permits is `),
      );
    }
    for (const method of ['acquireMany', 'tryAcquireMany', 'trySetPermits', 'setPermits'] as const) {
      await expect(leased[method](bad)).rejects.toMatchObject(
        refused(`${method}() of the semaphore 'licences': permits is `),
      );
    }
    await expect(latch.trySetCount(bad)).rejects.toMatchObject(refused("trySetCount() of the latch 'done': count is "));
    nothingWasAsked();
  });

  it('numbers: too many permits at once and a latch of 0 are refused', async () => {
    const { leased, latch, nothingWasAsked } = await open();
    await expect(leased.acquireMany(1_001)).rejects.toMatchObject(refused('a whole number from 0 to 1000'));
    await expect(latch.trySetCount(0)).rejects.toMatchObject(refused('a whole number from 1 to'));
    nothingWasAsked();
  });

  it('permits to add may be negative, but must be whole numbers', async () => {
    const { counted, leased, nothingWasAsked } = await open();
    for (const bad of [0.5, -(2 ** 31) - 1, Number.NaN]) {
      await expect(counted.addPermits(bad)).rejects.toMatchObject(refused('addPermits()'));
      await expect(leased.addPermits(bad)).rejects.toMatchObject(refused('addPermits()'));
    }
    nothingWasAsked();
  });

  it.each(BAD_LEASES)('lease times: %p is refused', async (bad) => {
    const { leased, nothingWasAsked } = await open();
    await expect(leased.acquire(bad)).rejects.toMatchObject(
      refused("acquire() of the semaphore 'licences': leaseTime"),
    );
    await expect(leased.tryAcquire(0, bad)).rejects.toMatchObject(refused('tryAcquire()'));
    await expect(leased.updateLeaseTime('0'.repeat(32), bad)).rejects.toMatchObject(refused('updateLeaseTime()'));
    nothingWasAsked();
  });

  it.each(BAD_WAITS)('waiting times: %p is refused', async (bad) => {
    const { counted, leased, latch, nothingWasAsked } = await open();
    await expect(counted.tryAcquire(1, bad)).rejects.toMatchObject(
      refused("tryAcquire() of the semaphore 'mail': wait"),
    );
    await expect(leased.tryAcquire(bad)).rejects.toMatchObject(refused('waitTime'));
    await expect(latch.await(bad)).rejects.toMatchObject(refused("await() of the latch 'done': "));
    nothingWasAsked();
  });

  it('a signal that is not an AbortSignal is refused', async () => {
    const { counted, leased, latch, nothingWasAsked } = await open();
    const options = { signal: {} as never };
    await expect(counted.acquire(1, options)).rejects.toMatchObject(refused('signal is not an AbortSignal'));
    await expect(leased.acquire(undefined, options)).rejects.toMatchObject(refused('signal is not an AbortSignal'));
    await expect(latch.await(undefined, options)).rejects.toMatchObject(refused('signal is not an AbortSignal'));
    nothingWasAsked();
  });

  it.each(BAD_IDS)('permit ids: %p is refused', async (bad) => {
    const { leased, nothingWasAsked } = await open();
    await expect(leased.release(bad)).rejects.toMatchObject(refused('is not a permit id'));
    await expect(leased.tryRelease([bad])).rejects.toMatchObject(refused('is not a permit id'));
    await expect(leased.updateLeaseTime(bad, '1m')).rejects.toMatchObject(refused('is not a permit id'));
    nothingWasAsked();
  });

  it.each(['', 'a{b', '{}', 'x'.repeat(2_000), undefined, null, 7, {}] as never[])(
    'names: %p is refused when the handle is created',
    async (bad) => {
      const locks = await world.service();
      const keyError = expect.objectContaining({
        name: 'LockKeyError',
        message: expect.stringMatching(/^get\w+\(\): /),
      });
      for (const method of ['getSemaphore', 'getPermitExpirableSemaphore', 'getCountDownLatch'] as const) {
        expect(() => locks[method](bad)).toThrow(keyError);
      }
    },
  );

  it('a backend without semaphores and latches is named when a handle is created', async () => {
    const nodes = Array.from(
      { length: 3 },
      () => new MemoryBackend({ runtime: nodeRuntime, store: new MemoryStore() }),
    );
    const locks = createLockService({ backend: new QuorumBackend({ nodes, runtime: nodeRuntime }) });
    for (const method of ['getSemaphore', 'getPermitExpirableSemaphore', 'getCountDownLatch'] as const) {
      expect(() => locks[method]('mail')).toThrow(
        expect.objectContaining(refused('quorum of memory, memory, memory does not support semaphores and latches')),
      );
    }
    await locks.close();
  });
});
