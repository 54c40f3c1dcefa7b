import type { LockBackend } from '../../../lib/backends/lock-backend.js';
import { LockConfigurationError } from '../../../lib/engine/errors.js';
import {
  assertDetachable,
  assertFlights,
  assertForSeveral,
  assertMayNotConfirm,
  assertNewest,
  assertSupported,
} from '../../../lib/engine/terms/assert-supported.js';

const backend = (parts: object) => ({ description: 'a database', ...parts }) as unknown as LockBackend;
const refuses = (call: () => void, message: string) => {
  expect(call).toThrow(LockConfigurationError);
  expect(call).toThrow(message);
};

describe('a backend', () => {
  it('has all types of locks if it refuses none', () => {
    for (const type of ['reentrant', 'read', 'permits'] as const) {
      expect(() => assertSupported(backend({}), type, 'acquire()')).not.toThrow();
      const blocking = { refusal: () => undefined };
      expect(() => assertSupported(backend({ blocking }), type, 'acquire()')).not.toThrow();
    }
  });

  it('refuses some types of locks with its reason', () => {
    const blocking = { refusal: (type: string) => (type === 'fair' ? 'it has no queue' : undefined) };
    expect(() => assertSupported(backend({ blocking }), 'read', 'acquire()')).not.toThrow();
    refuses(
      () => assertSupported(backend({ blocking }), 'fair', 'acquire()'),
      "acquire(): a database has no locks of type 'fair': it has no queue",
    );
  });

  it('refuses permits, and only these, where several servers decide', () => {
    const several = backend({ permitsRefusal: 'several servers decide' });
    expect(() => assertSupported(several, 'read', 'acquire()')).not.toThrow();
    refuses(
      () => assertSupported(several, 'permits', 'acquire()'),
      'acquire(): permits is not possible: several servers decide',
    );
  });

  it('refuses callers of whom only the newest waits where several servers decide', () => {
    expect(() => assertNewest(backend({}), 'acquire()')).not.toThrow();
    const several = backend({ permitsRefusal: 'several servers decide' });
    refuses(() => assertNewest(several, 'acquire()'), 'acquire(): newest is not possible (a database)');
    refuses(() => assertNewest(several, '@Run()', 'onBusy'), '@Run(): onBusy is not possible');
  });

  it('has single flights or refuses them', () => {
    expect(() => assertFlights(backend({ flights: {} }), 'singleFlight()')).not.toThrow();
    refuses(() => assertFlights(backend({}), 'singleFlight()'), 'singleFlight(): a database has no single flights');
  });

  it('lets locks change processes or refuses it, with its reason if it has one', () => {
    expect(() => assertDetachable(backend({ adopt: () => {} }), 'detach()')).not.toThrow();
    refuses(
      () => assertDetachable(backend({ adoptRefusal: 'it is a quorum' }), 'detach()'),
      'detach(): locks of this backend (a database) cannot be detached: it is a quorum',
    );
    refuses(() => assertDetachable(backend({}), 'detach()'), 'it cannot transfer a lock to another process');
  });
});

describe('an acquisition of several locks', () => {
  it.each([
    [{ permits: 2, newest: false }, 'permits is for one name'],
    [{ permits: undefined, newest: true }, 'newest is for one name'],
  ])('cannot have options for one lock: %j', (terms, message) => {
    refuses(() => assertForSeveral(terms, 'acquire()'), `acquire(): ${message}`);
  });

  it('can have all others', () => {
    expect(() => assertForSeveral({ permits: undefined, newest: false }, 'acquire()')).not.toThrow();
  });
});

describe('a release in the background', () => {
  it('is possible if nobody relies on the answer', () => {
    for (const onLost of [undefined, 'warn'] as const)
      expect(() => assertMayNotConfirm(undefined, onLost, 'withLock()')).not.toThrow();
  });

  it('is refused for a reason, or if a loss is to be thrown', () => {
    refuses(
      () => assertMayNotConfirm('it is a quorum', undefined, 'withLock()'),
      "withLock(): release: 'background' is not possible: it is a quorum. Use 'confirmed'",
    );
    refuses(
      () => assertMayNotConfirm(undefined, 'throw', 'withLock()'),
      "withLock(): onLost: 'throw' and release: 'background' exclude each other",
    );
  });
});
