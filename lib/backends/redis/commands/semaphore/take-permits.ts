import type { RequestId } from '../../../synchronizer-backend.js';
import { counterNote, semaphoreChannel } from '../../lock-keys.js';
import type { SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/**
 * Takes the permits of as many groups, from the first on, as there are permits for. Returns how many groups got theirs;
 * −1: there is no semaphore.
 */
export async function takePermits(
  calls: SynchronizerCalls,
  key: string,
  groups: readonly number[],
  request: RequestId,
  initial: number | undefined,
): Promise<number> {
  const groupsServed = (reply: unknown) => calls.integer(reply);
  const publish = initial === undefined ? '' : await calls.publishCommand(key, semaphoreChannel(key));
  const args = [publish, initial ?? '', ...groups];
  return groupsServed(await calls.take('take-permits-3', [key, counterNote(key)], request, args, groupsServed));
}
