import type { Lease } from '../../../lib/engine/terms/lease.js';
import { machineTime } from '../history.js';

/** Settles when this lease is lost, with the time. */
export function lossOf(lease: Lease): Promise<number> {
  return new Promise((resolve) => {
    lease.signal.addEventListener('abort', () => resolve(machineTime()), { once: true });
  });
}
