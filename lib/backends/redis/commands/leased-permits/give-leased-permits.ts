import type { RequestId } from '../../../synchronizer-backend.js';
import { permitLeases, semaphoreChannel } from '../../lock-keys.js';
import type { SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/** Gives permits back, and notifies waiters. False: that permit was not held. */
export async function giveLeasedPermits(
  calls: SynchronizerCalls,
  key: string,
  ids: readonly string[],
  request: RequestId,
): Promise<readonly boolean[]> {
  const publish = await calls.publishCommand(key, semaphoreChannel(key));
  return calls.flags(await calls.change('give-leased-permits-3', [key, permitLeases(key)], request, publish, ids));
}
