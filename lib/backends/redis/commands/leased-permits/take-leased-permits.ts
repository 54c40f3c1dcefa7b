import type { RequestId, TakenPermits } from '../../../synchronizer-backend.js';
import { counterNote, permitLeases, semaphoreChannel } from '../../lock-keys.js';
import { arrayOf } from '../../reply-shape.js';
import type { SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/** Takes permits under ids, each with a lease, for as many groups, from the first on, as there are permits for. */
export async function takeLeasedPermits(
  calls: SynchronizerCalls,
  key: string,
  groups: readonly (readonly string[])[],
  leaseTime: number,
  request: RequestId,
  initial: number | undefined,
): Promise<TakenPermits> {
  const publish = await calls.publishCommand(key, semaphoreChannel(key));
  const sizes = groups.map((ids) => ids.length);
  const args = [publish, leaseTime, initial ?? '', groups.length, ...sizes, ...groups.flat()];
  const read = (reply: unknown): TakenPermits => {
    // The script says NO_LEASE_ENDS (-1) as the port does.
    const [served, remaining, missing] = arrayOf(reply, calls.server).map((part) => calls.integer(part));
    return missing === 1 ? { served, remaining, missing: true } : { served, remaining };
  };
  const keys = [key, permitLeases(key), counterNote(key)] as const;
  return read(await calls.take('take-leased-permits-4', keys, request, args, (reply) => read(reply).served));
}
