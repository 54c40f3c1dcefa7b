import type { RequestId } from '../../../synchronizer-backend.js';
import type { SemaphoreType } from '../../../synchronizer-state.js';
import { semaphoreChannel } from '../../lock-keys.js';
import { trySetCount } from '../synchronizers/count.js';
import type { SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/**
 * Sets the permits of a semaphore, and notifies waiters of their number if there are any. False: it has some already.
 */
export async function trySetPermits(
  calls: SynchronizerCalls,
  key: string,
  permits: number,
  request: RequestId,
  type: SemaphoreType,
): Promise<boolean> {
  const channel = semaphoreChannel(key);
  const publish = permits > 0 ? await calls.publishCommand(key, channel) : '';
  return trySetCount(calls, key, permits, request, publish, channel, String(permits), type);
}
