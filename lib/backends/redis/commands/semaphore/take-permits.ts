import type { RequestId } from '../../../synchronizer-backend.js';
import type { SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/** Takes the permits of as many groups, from the first on, as there are permits for. Returns how many groups got theirs. */
export async function takePermits(
  calls: SynchronizerCalls,
  key: string,
  groups: readonly number[],
  request: RequestId,
): Promise<number> {
  const groupsServed = (reply: unknown) => calls.integer(reply);
  return groupsServed(await calls.take('take-permits-2', [key], request, groups, groupsServed));
}
