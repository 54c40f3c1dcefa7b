import { jest } from '@jest/globals';
import type { WaitBackend } from '../../../lib/backends/wait-backend.js';
import { LockBusyError } from '../../../lib/engine/errors.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { describeDeadlocks } from './describe-deadlocks.js';

describeDeadlocks('memory');

describe('the search for deadlocks', () => {
  const world = openVirtualWorld();

  it('asks a slow backend nothing until it has answered the previous question', async () => {
    const { locks, backend, runtime } = await world.process();
    const other = await world.process();
    await other.locks.acquire('stock');
    const answer = latch();
    const asked = jest.spyOn(backend.waits as WaitBackend, 'holders').mockImplementation(async () => {
      await answer.promise;
      return [];
    });
    const refused = errorOf(locks.withLock('order', () => locks.acquire('stock', { waitTime: '10s' })));
    await runtime.advance(5_000);
    expect(asked).toHaveBeenCalledTimes(1);
    answer.open();
    await runtime.advance(1_000);
    expect(asked.mock.calls.length).toBeGreaterThan(1);
    expect(await runtime.until(refused)).toBeInstanceOf(LockBusyError);
  });
});
