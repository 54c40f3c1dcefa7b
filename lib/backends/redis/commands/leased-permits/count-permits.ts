import type { PermitCounts } from '../../../synchronizer-backend.js';
import { permitLeases, semaphoreChannel } from '../../lock-keys.js';
import { arrayOf } from '../../reply-shape.js';
import type { SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/** How many permits are available, and how many are held. */
export async function countPermits(calls: SynchronizerCalls, key: string): Promise<PermitCounts> {
  const publish = await calls.publishCommand(key, semaphoreChannel(key));
  const reply = await calls.run('count-permits-2', [key, permitLeases(key)], [publish]);
  const [available, acquired] = arrayOf(reply, calls.server).map((part) => calls.integer(part));
  return { available, acquired };
}
