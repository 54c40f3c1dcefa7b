import type { AcquireRequest, BackendError } from '../backends/lock-backend.js';
import type { SqlConnection } from './driver/sql-connection.js';
import { type AcquisitionTools, RowAcquisition, type TakenRows } from './row-acquisition.js';
import type { TokenRange } from './server/lock-server.js';

/** A row that somebody else has locked, and which of the requests wanted it. */
export interface BusyRow {
  readonly index: number;
}

/**
 * Takes all rows or none in one transaction, without waiting for their holders.
 *
 * @throws BackendError
 */
export async function tryRows(
  tools: AcquisitionTools,
  requests: readonly [AcquireRequest, ...AcquireRequest[]],
): Promise<TakenRows | BusyRow> {
  const acquisition = await RowAcquisition.begin(tools, requests[0], () => sessionSoon(tools));
  if (acquisition === undefined) throw tools.failures.toBackendError(new Error('the lock service was closed'));
  let tokens: readonly TokenRange[];
  try {
    for (const [index, { key }] of requests.entries()) {
      if (await acquisition.tryRow(key)) continue;
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

/** Rejects after a second in which no session of the pool became free. */
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
