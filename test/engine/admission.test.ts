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
  const shuttingDown = (isClosed: boolean) => {
    const admission = new Admission(service);
    admission.isClosing = true;
    admission.isClosed = isClosed;
    return admission;
  };

  it('lets everybody in until shutdown begins, and says who runs in a scope of the service', () => {
    const admission = new Admission(service);
    expect(admission.admit('acquire()', 'order')).toBe(false);
    inScopeOf(service, () => {
      expect(admission.admit('acquire()', 'order')).toBe(true);
      expect(admission.admit('acquire()', 'order', false)).toBe(false);
    });
    inScopeOf({}, () => expect(admission.admit('acquire()', 'order')).toBe(false));
  });

  it('lets only callers in a live scope of the service in while it shuts down', () => {
    const admission = shuttingDown(false);
    const admit = () => admission.admit('acquire()', 'order');
    expect(admit).toThrow(LockAbortedError);
    expect(admit).toThrow('acquire(): the lock service is shutting down');
    inScopeOf({}, () => expect(admit).toThrow(LockAbortedError));
    inScopeOf(service, (scope, lease) => {
      expect(admit()).toBe(true);
      lease.live = false;
      expect(admit).toThrow(LockAbortedError);
      lease.live = true;
      scope.end();
      expect(admit).toThrow(LockAbortedError);
    });
  });

  it('lets nobody in after that', () => {
    const admission = shuttingDown(true);
    expect(() => admission.admit('acquire()', 'order')).toThrow(LockAbortedError);
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
