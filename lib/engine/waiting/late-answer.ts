import { BackendError } from '../../backends/lock-backend.js';
import { type LeaseClock, type Moment, validity } from '../lease/lease-clock.js';

/**
 * An answer that arrives after the lease that it grants has ended grants nothing.
 *
 * @returns the failure that it is treated as; `undefined` where the answer is in time
 */
export function lateAnswer(
  clock: LeaseClock,
  sent: Moment,
  leaseTime: number,
  now?: Moment,
  outcome: BackendError['outcome'] = 'unknown',
): BackendError | undefined {
  if (clock.age(sent, now) < validity(leaseTime)) return undefined;
  const message = `the answer came after the lease of ${leaseTime} ms had ended`;
  return new BackendError(message, 'unavailable', outcome);
}
