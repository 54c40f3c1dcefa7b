import type { RequestId } from '../../../synchronizer-backend.js';
import type { SemaphoreType } from '../../../synchronizer-state.js';
import { counterNote, semaphoreChannel } from '../../lock-keys.js';
import { DONE, type SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/** Adds permits. A negative number takes permits away, below zero if need be. */
export async function addPermits(
  calls: SynchronizerCalls,
  key: string,
  permits: number,
  request: RequestId,
  type: SemaphoreType | undefined,
): Promise<void> {
  await add(calls, key, permits, request, 0, type);
}

/** As {@link addPermits}. False: the semaphore does not exist, and was not created. */
export async function addPermitsIfExists(
  calls: SynchronizerCalls,
  key: string,
  permits: number,
  request: RequestId,
): Promise<boolean> {
  return calls.integer(await add(calls, key, permits, request, 1)) === DONE;
}

async function add(
  calls: SynchronizerCalls,
  key: string,
  permits: number,
  request: RequestId,
  onlyIfExists: 0 | 1,
  type?: SemaphoreType,
): Promise<unknown> {
  const publish = await calls.publishCommand(key, semaphoreChannel(key));
  const args = [permits, onlyIfExists, type ?? ''];
  return calls.change('add-permits-3', [key, counterNote(key)], request, publish, args);
}
