import type { RequestId } from '../../../synchronizer-backend.js';
import type { SynchronizerType } from '../../../synchronizer-state.js';
import { counterNote } from '../../lock-keys.js';
import { DONE, type SynchronizerCalls } from './synchronizer-calls.js';

/** The permits of a semaphore that are available, or the count of a latch; 0 when there is none. */
export async function getCount(calls: SynchronizerCalls, key: string): Promise<number> {
  return calls.integer(await calls.run('get-count-1', [key]));
}

/**
 * Sets the permits of a semaphore or the count of a latch. False: it has some already.
 *
 * @param publish PUBLISH or SPUBLISH; empty: no message
 */
export async function trySetCount(
  calls: SynchronizerCalls,
  key: string,
  count: number,
  request: RequestId,
  publish: string,
  channel: string,
  message: string,
  type: SynchronizerType,
): Promise<boolean> {
  const keys = [key, counterNote(key)] as const;
  const reply = await calls.change('try-set-count-3', keys, request, publish, [count, channel, message, type]);
  return calls.integer(reply) === DONE;
}
