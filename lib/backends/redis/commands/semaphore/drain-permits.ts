import type { RequestId } from '../../../synchronizer-backend.js';
import type { SynchronizerCalls } from '../synchronizers/synchronizer-calls.js';

/** Takes all permits that are available, and returns how many these were. */
export async function drainPermits(calls: SynchronizerCalls, key: string, request: RequestId): Promise<number> {
  const permits = (reply: unknown) => calls.integer(reply);
  return permits(await calls.take('drain-permits-2', [key], request, [], permits));
}
