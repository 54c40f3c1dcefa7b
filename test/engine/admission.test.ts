import { Admission } from '../../lib/engine/admission.js';
import { LockAbortedError } from '../../lib/engine/errors.js';
import { LockScope, latestCall, lockScopes, type ScopedLease } from '../../lib/engine/scope/lock-scope.js';

describe('the admission of callers to a service', () => {
  const service = {};

  /** Runs `work` in the scope of a lease of this service. */
  const inScopeOf = <T>(owner: object, work: (scope: LockScope, lease: { live: boolean }) => T): T => {
    const lease = { service: owner, live: true, released: false, isStranger: false };
    const scope = new LockScope(lease as unknown as ScopedLease, undefined);
    return lockScopes.run(scope, () => work(scope, lease));
  };

  it('lets everybody in, and says who runs in a scope of the service', () => {
    const admission = new Admission(service);
    expect(admission.admit('acquire()', 'order')).toBe(false);
    inScopeOf(service, () => {
      expect(admission.admit('acquire()', 'order')).toBe(true);
      expect(admission.admit('acquire()', 'order', false)).toBe(false);
    });
    inScopeOf({}, () => expect(admission.admit('acquire()', 'order')).toBe(false));
  });

  it('lets everybody in until the end of a shutdown', () => {
    const admission = new Admission(service);
    admission.isEnding = admission.isDraining = true;
    const admit = () => admission.admit('acquire()', 'order');
    expect(admit()).toBe(false);
    inScopeOf(service, (scope, lease) => {
      expect(admit()).toBe(true);
      lease.live = false;
      expect(admit()).toBe(false);
      lease.live = true;
      scope.end();
      expect(admit()).toBe(false);
    });
  });

  it('lets nobody in after that', () => {
    const admission = new Admission(service);
    admission.isClosed = true;
    expect(() => admission.admit('acquire()', 'order')).toThrow(LockAbortedError);
    expect(() => admission.admit('acquire()', 'order')).toThrow('acquire(): the lock service is shutting down');
    inScopeOf(service, () => expect(() => admission.admit('acquire()', 'order')).toThrow(LockAbortedError));
  });

  it('notes in the scope of the caller that it begins an acquisition', () => {
    const admission = new Admission(service);
    inScopeOf(service, (scope) => {
      const before = latestCall();
      admission.admit('acquire()', 'order');
      expect([scope.lastCall, latestCall()]).toEqual([before + 1, before + 1]);
      admission.admit('acquire()', 'order', false);
      expect(scope.lastCall).toBe(before + 1);
    });
    const before = latestCall();
    admission.admit('acquire()', 'order');
    expect(latestCall()).toBe(before);
  });
});
