import type { RequestId } from '../../../synchronizer-backend.js';
import { counterNote, latchChannel } from '../../lock-keys.js';
import { DONE, type SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/** Deletes a latch, and notifies waiters. False: there was none. */
export async function deleteLatch(calls: SynchronizerCalls, key: string, request: RequestId): Promise<boolean> {
  const publish = await calls.publishCommand(key, latchChannel(key));
  return calls.integer(await calls.change('delete-latch-3', [key, counterNote(key)], request, publish)) === DONE;
}
