import type { AcquireRequest, BackendError } from '../backend.js';
import { Acquisition, type AcquisitionTools, type TakenLocks } from './acquisition.js';
import type { SqlConnection } from './driver/sql-connection.js';
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
  const acquisition = await Acquisition.begin(tools, requests[0], () => sessionSoon(tools));
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

/** Takes a session of the pool. Rejects if none becomes free within a second. */
function sessionSoon({ pool }: AcquisitionTools): Promise<SqlConnection | undefined> {
  return new Promise((resolve, reject) => {
    const claim = {
      onFull: (error: BackendError) => {
        reject(error);
        pool.withdraw(claim);
      },
    };
    pool.take(claim).then(resolve, reject);
  });
}
