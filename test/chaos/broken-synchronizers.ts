import type { SynchronizerBackend } from '../../lib/backends/synchronizer-backend.js';
import { differing } from '../support/watched/differing.js';

/** Semaphores and latches that break one promise. Only for tests of the history checker. */
export type SynchronizerBreakage = (synchronizers: SynchronizerBackend) => SynchronizerBackend;

/** Sometimes grants one permit too many, to a caller that should have found none. */
export const grantsOneTooMany: SynchronizerBreakage = (whole) => {
  let refusals = 0;
  return differing(whole, {
    async takePermits(key, groups, request, initial) {
      const served = await whole.takePermits(key, groups, request, initial);
      return served <= 0 && ++refusals % 3 === 0 ? 1 : served;
    },
  });
};

/** The same for permits with a lease: the caller gets an id that is not held. */
export const leasesOneTooMany: SynchronizerBreakage = (whole) => {
  let refusals = 0;
  return differing(whole, {
    async takeLeasedPermits(key, groups, leaseTime, request, initial) {
      const taken = await whole.takeLeasedPermits(key, groups, leaseTime, request, initial);
      return taken.served === 0 && ++refusals % 3 === 0 ? { ...taken, served: 1 } : taken;
    },
  });
};

/** Adds permits again when a request is repeated. */
export const forgetsRequests: SynchronizerBreakage = (whole) => {
  let number = 1_000_000;
  return differing(whole, {
    addPermits: (key, permits, request, type) =>
      whole.addPermits(key, permits, { ...request, sequence: ++number }, type),
  });
};

/** Announces neither a release nor that a latch is open. */
export const tellsNobody: SynchronizerBreakage = (whole) =>
  differing(whole, { subscribe: (key, kind) => whole.subscribe(key, kind, () => {}) });

/** Reports that it has renewed permits, but does not renew them. */
export const renewsNothing: SynchronizerBreakage = (whole) =>
  differing(whole, { renewPermits: async (_key, ids) => ids.map(() => true) });

/** Opens a latch one step too early. */
export const opensEarly: SynchronizerBreakage = (whole) =>
  differing(whole, {
    async getCount(key) {
      const count = await whole.getCount(key);
      return count === 1 ? 0 : count;
    },
  });
