import type { SynchronizerBackend } from '../../lib/backends/synchronizer-backend.js';

/** Semaphores and latches that break one promise. Only for tests of the history checker. */
export type SynchronizerBreakage = (synchronizers: SynchronizerBackend) => SynchronizerBackend;

/** Sometimes grants one permit too many, to a caller that should have found none. */
export const grantsOneTooMany: SynchronizerBreakage = (whole) => {
  let refusals = 0;
  return broken(whole, {
    async takePermits(key, groups, request, initial) {
      const served = await whole.takePermits(key, groups, request, initial);
      return served <= 0 && ++refusals % 3 === 0 ? 1 : served;
    },
  });
};

/** The same for permits with a lease: the caller gets an id that is not held. */
export const leasesOneTooMany: SynchronizerBreakage = (whole) => {
  let refusals = 0;
  return broken(whole, {
    async takeLeasedPermits(key, groups, leaseTime, request, initial) {
      const taken = await whole.takeLeasedPermits(key, groups, leaseTime, request, initial);
      return taken.served === 0 && ++refusals % 3 === 0 ? { ...taken, served: 1 } : taken;
    },
  });
};

/** Adds permits again when a request is repeated. */
export const forgetsRequests: SynchronizerBreakage = (whole) => {
  let number = 1_000_000;
  return broken(whole, {
    addPermits: (key, permits, request, type) =>
      whole.addPermits(key, permits, { ...request, sequence: ++number }, type),
  });
};

/** Announces neither a release nor that a latch is open. */
export const tellsNobody: SynchronizerBreakage = (whole) =>
  broken(whole, { subscribe: (key, kind) => whole.subscribe(key, kind, () => {}) });

/** Reports that it has renewed permits, but does not renew them. */
export const renewsNothing: SynchronizerBreakage = (whole) =>
  broken(whole, { renewPermits: async (_key, ids) => ids.map(() => true) });

/** Opens a latch one step too early. */
export const opensEarly: SynchronizerBreakage = (whole) =>
  broken(whole, {
    async getCount(key) {
      const count = await whole.getCount(key);
      return count === 1 ? 0 : count;
    },
  });

function broken(whole: SynchronizerBackend, differences: Partial<SynchronizerBackend>): SynchronizerBackend {
  return new Proxy(whole, {
    get(target, property) {
      const own = differences[property as keyof SynchronizerBackend];
      const value = own ?? Reflect.get(target, property);
      return typeof value === 'function' && own === undefined ? value.bind(target) : value;
    },
  });
}
