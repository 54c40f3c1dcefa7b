import type { LockLease } from '../../../lib/engine/lease/lock-lease.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import type { HistoryRecorder } from '../history-recorder.js';

/**
 * Records the leases that the test itself acquires in the history, beside those of the load, so that the same rules
 * apply to them. Whether an acquisition should be refused is asserted by the test.
 */
export function recorded(locks: LockService, recorder: HistoryRecorder): LockService {
  const acquire = locks.acquire.bind(locks);
  locks.acquire = async (names: string | readonly string[], options: LockOptions = {}) => {
    const lease = (await acquire(names, options)) as LockLease;
    const call = recorder.sent(names, options);
    recorder.granted(call, lease);
    const release = lease.release.bind(lease);
    lease.release = () => {
      recorder.releaseAsked(call, lease);
      const answer = release();
      void recorder.released(call, answer);
      return answer;
    };
    return lease;
  };
  return locks;
}
