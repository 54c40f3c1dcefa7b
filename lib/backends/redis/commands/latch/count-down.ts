import type { RequestId } from '../../../synchronizer-backend.js';
import { counterNote, latchChannel } from '../../lock-keys.js';
import type { SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/** Lowers the count of a latch by `steps`, but not below zero. At zero it is deleted and waiters are notified. */
export async function countDown(
  calls: SynchronizerCalls,
  key: string,
  steps: number,
  request: RequestId,
): Promise<void> {
  const publish = await calls.publishCommand(key, latchChannel(key));
  await calls.change('count-down-3', [key, counterNote(key)], request, publish, [steps]);
}
