import { LockLostError } from '../../../lib/engine/errors.js';
import {
  forcedReleaseError,
  type Loss,
  lockLostError,
  lostOnReleaseError,
  permitLostError,
} from '../../../lib/engine/hold/loss-reasons.js';

describe('the error about a loss', () => {
  const failure = new Error('connection refused');

  it.each<[string, Loss, string]>([
    ['the reason', { reason: 'ended' }, 'its lease ended'],
    [
      'the failure of the last renewal',
      { reason: 'failed', error: failure },
      'it could not be renewed before its lease ended: connection refused',
    ],
    [
      'a blocked event loop as the reason',
      { reason: 'blocked', blockedFor: 39_040 },
      'its lease was not renewed in time, because the event loop of this process was blocked for 39.0 s',
    ],
    [
      'a blocked event loop beside another reason',
      { reason: 'failed', blockedFor: 25_000, error: failure },
      'it could not be renewed before its lease ended (during it, the event loop of this process was blocked for 25.0 s): connection refused',
    ],
  ])('names %s', (_, loss, why) => {
    for (const error of [lockLostError('order', loss), lostOnReleaseError('order', loss)]) {
      expect(error).toBeInstanceOf(LockLostError);
      expect(error.lockName).toBe('order');
      expect(error.message).toContain(`The lock 'order' was lost: ${why}. `);
    }
    const error = permitLostError("the semaphore 'slots'", 'slots', loss);
    expect(error.lockName).toBe('slots');
    expect(error.message).toContain(`A permit of the semaphore 'slots' was lost: ${why}. `);
  });

  it('suspects a forced release of a lock that is gone, which permits do not have', () => {
    const loss: Loss = { reason: 'gone' };
    expect(lockLostError('order', loss).message).toContain('it no longer existed at renewal (was it force-released');
    expect(permitLostError('slots', 'slots', loss).message).toContain('it no longer existed at renewal. ');
  });

  it('says that a lock was released by force, unless the backend gives a reason', () => {
    expect(forcedReleaseError('order').message).toBe("The lock 'order' was lost: it was force-released");
    expect(forcedReleaseError('order', 'its server left').message).toBe("The lock 'order' was lost: its server left");
    expect(forcedReleaseError('order').lockName).toBe('order');
  });
});
