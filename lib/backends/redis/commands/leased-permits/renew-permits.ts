import { permitLeases } from '../../lock-keys.js';
import type { SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/** Sets the leases of these permits to `leaseTime` from now on. False: that permit is not held. */
export async function renewPermits(
  calls: SynchronizerCalls,
  key: string,
  ids: readonly string[],
  leaseTime: number,
): Promise<readonly boolean[]> {
  return calls.flags(await calls.run('renew-permits-1', [permitLeases(key)], [leaseTime, ...ids]));
}
