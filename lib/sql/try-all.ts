import type { AcquireRequest } from '../backend.js';
import { Acquisition, type AcquisitionTools, type TakenLocks } from './acquisition.js';
import type { TokenRange } from './session-locks/session-locks.js';

/** The index of a request whose lock somebody else holds. */
export interface BusyLock {
  readonly index: number;
}

/**
 * Takes all locks or none with one session, without waiting for their holders.
 *
 * @throws BackendError
 */
export async function tryAll(
  tools: AcquisitionTools,
  requests: readonly [AcquireRequest, ...AcquireRequest[]],
): Promise<TakenLocks | BusyLock> {
  const acquisition = await Acquisition.begin(tools, requests[0], () => tools.pool.takeSoon());
  if (acquisition === undefined) throw tools.failures.toBackendError(new Error('the lock service was closed'));
  let tokens: readonly TokenRange[];
  try {
    for (const [index, { key }] of requests.entries()) {
      if (await acquisition.tryLock(key)) continue;
      await acquisition.undo();
      return { index };
    }
    tokens = await Promise.all(requests.map((request) => acquisition.note(request)));
  } catch (error) {
    acquisition.abandon();
    throw error;
  }
  return { connection: acquisition.connection, transaction: acquisition.transaction, tokens };
}
