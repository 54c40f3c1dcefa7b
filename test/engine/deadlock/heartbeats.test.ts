import { jest } from '@jest/globals';
import { BackendError } from '../../../lib/backends/backend-error.js';
import type { WaitBackend } from '../../../lib/backends/wait-backend.js';
import { LockDeadlockError } from '../../../lib/engine/errors.js';
import { openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';

describe('the search for deadlocks', () => {
  const world = openVirtualWorld();

  const waitsOf = ({ backend }: VirtualProcess) => backend.waits as WaitBackend;

  /** A caller that holds the lock `outer`, and waits for the lock `busy` of another process. */
  async function nestedWait() {
    const [process, other] = [await world.process(), await world.process()];
    const { locks, runtime } = process;
    const held = await runtime.until(other.locks.acquire('busy', { leaseTime: '1h' }));
    const owners: string[] = [];
    const after = latch();
    const ended = locks.withLock('outer', async ({ owner }) => {
      owners.push(owner);
      await locks.withLock('busy', () => {});
      await after.promise;
    });
    await runtime.settle();
    const written = async () => {
      const stored = await waitsOf(process).read(owners);
      return stored.map(({ size }) => size);
    };
    const end = async () => {
      after.open();
      await runtime.until(Promise.all([held.release(), ended]));
    };
    return { process, runtime, held, written, end };
  }

  it('removes a wait from the journal as soon as it has ended', async () => {
    const { runtime, held, written, end } = await nestedWait();
    await runtime.advance(900);
    expect(await written()).toEqual([0]);
    await runtime.advance(400);
    expect(await written()).toEqual([1]);
    await runtime.until(held.release());
    await runtime.settle();
    expect(await written()).toEqual([0]);
    await end();
  });

  it('stops when no wait is left', async () => {
    const { process, runtime, end } = await nestedWait();
    await runtime.advance(2_000);
    const asked = jest.spyOn(waitsOf(process), 'holders');
    await end();
    await runtime.advance(5_000);
    expect(asked).not.toHaveBeenCalled();
    expect(runtime.timers).toBe(0);
  });

  it('follows a wait every 250 ms, and every second when it has lasted for over three seconds', async () => {
    const { process, runtime, end } = await nestedWait();
    const read = jest.spyOn(waitsOf(process), 'read');
    const readsIn = async (time: number) => {
      const before = read.mock.calls.length;
      await runtime.advance(time);
      return read.mock.calls.length - before;
    };
    expect(await readsIn(900)).toBe(0);
    expect(await readsIn(2_000)).toBe(8);
    await runtime.advance(1_100);
    expect(await readsIn(10_000)).toBe(10);
    await end();
  });

  it('continues after a failure while a deadlock was being confirmed', async () => {
    const [one, two] = [await world.process(), await world.process()];
    const { runtime } = one;
    const both = [latch(), latch()];
    const nest = ({ locks }: VirtualProcess, n: number) =>
      locks.withLock(`${n}`, async () => {
        both[n].open();
        await Promise.all(both.map(({ promise }) => promise));
        await new Promise<void>((resolve) => runtime.timer(50 * n, resolve));
        return await locks.withLock(`${1 - n}`, async () => 'done');
      });
    // Between two heartbeats, the waits are read only to confirm a deadlock.
    const waits = waitsOf(two);
    const read = waits.read.bind(waits);
    let [before, failures] = [0, 0];
    jest.spyOn(waits, 'read').mockImplementation(async (holders) => {
      const since = runtime.monotonic() - before;
      before = runtime.monotonic();
      if (since < 350 || since > 450 || failures++ > 0) return read(holders);
      throw new BackendError('no answer in time', 'unavailable', 'unknown');
    });
    const results = await runtime.until(Promise.allSettled([nest(one, 0), nest(two, 1)]));
    expect(failures).toBeGreaterThan(0);
    expect(results).toMatchObject([
      { status: 'fulfilled', value: 'done' },
      { status: 'rejected', reason: expect.any(LockDeadlockError) },
    ]);
  });

  const failing = (process: VirtualProcess, kind: 'unavailable' | 'denied') =>
    jest.spyOn(waitsOf(process), 'write').mockImplementation(async () => {
      throw new BackendError('the journal cannot be written', kind, 'refused');
    });

  it('reports that it fails for long, once, and again when it has worked meanwhile', async () => {
    const { process, runtime, end } = await nestedWait();
    const { warnings } = process.logger;
    await runtime.advance(900);
    for (const times of [1, 2]) {
      const write = failing(process, 'unavailable');
      await runtime.advance(700); // three heartbeats at most
      expect(warnings).toHaveLength(times - 1);
      await runtime.advance(10_000);
      expect(warnings).toHaveLength(times);
      write.mockRestore();
      await runtime.advance(5_000);
    }
    await end();
  });

  it('reports at once that it lacks a permission', async () => {
    const { process, runtime, end } = await nestedWait();
    const { warnings } = process.logger;
    failing(process, 'denied');
    await runtime.advance(1_100);
    expect(warnings).toHaveLength(1);
    await runtime.advance(5_000);
    expect(warnings).toHaveLength(1);
    await end();
  });
});
