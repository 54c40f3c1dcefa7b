import type { RequestId } from '../../../synchronizer-backend.js';
import { latchChannel } from '../../lock-keys.js';
import { trySetCount } from '../synchronizers/count.js';
import type { SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/** What Redisson publishes when a latch gets its count. */
const COUNT_WAS_SET = '1';

/** Gives a latch its count, and notifies waiters. Returns false if it already has one. */
export async function trySetLatch(
  calls: SynchronizerCalls,
  key: string,
  count: number,
  request: RequestId,
): Promise<boolean> {
  const channel = latchChannel(key);
  const publish = await calls.publishCommand(key, channel);
  return trySetCount(calls, key, count, request, publish, channel, COUNT_WAS_SET, 'count-down-latch');
}
