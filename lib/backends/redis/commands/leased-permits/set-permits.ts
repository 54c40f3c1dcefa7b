import type { RequestId } from '../../../synchronizer-backend.js';
import { counterNote, permitLeases, semaphoreChannel } from '../../lock-keys.js';
import type { SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/** Sets the sum of available and acquired permits, and notifies waiters if there are more than before. */
export async function setPermits(
  calls: SynchronizerCalls,
  key: string,
  permits: number,
  request: RequestId,
): Promise<void> {
  const publish = await calls.publishCommand(key, semaphoreChannel(key));
  const keys = [key, permitLeases(key), counterNote(key)] as const;
  await calls.change('set-permits-4', keys, request, publish, [permits]);
}
