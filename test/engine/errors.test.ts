import {
  LockAbortedError,
  LockBusyError,
  LockConfigurationError,
  LockDeadlockError,
  LockError,
  LockKeyError,
  LockLostError,
  LockNotOwnedError,
  LockSupersededError,
  LockUnavailableError,
  LockUpgradeError,
} from '../../lib/engine/errors.js';

describe('the error about a busy lock', () => {
  it('tells the code which client holds the lock, but is serialized without it', () => {
    const client = { application: 'shop', host: 'web-1', pid: 7, method: 'Orders.place' } as never;
    const error = new LockBusyError('busy', 'order', 500, 'client:1', true, client);
    expect(error.holderClient).toBe(client);
    expect(error).toMatchObject({ lockName: 'order', remainingTime: 500, holder: 'client:1', fixedLease: true });
    expect(JSON.stringify({ ...error })).not.toContain('web-1');
    expect(Object.keys(error)).not.toContain('holderClient');
  });

  it('does not claim that the lease is never renewed unless that is known', () => {
    const error = new LockBusyError('busy', 'order', -1, undefined);
    expect([error.fixedLease, error.holderClient]).toEqual([false, undefined]);
  });
});

describe('an error of this library', () => {
  const cause = new Error('no disk');
  const errors = {
    LockError: new LockError('failed', 'order', { cause }),
    LockBusyError: new LockBusyError('failed', 'order', 1, undefined),
    LockSupersededError: new LockSupersededError('failed', 'order', 1, undefined),
    LockLostError: new LockLostError('failed', 'order', { cause }),
    LockNotOwnedError: new LockNotOwnedError('failed', 'order', { cause }),
    LockKeyError: new LockKeyError('failed', 'order', { cause }),
    LockAbortedError: new LockAbortedError('failed', 'order', { cause }),
    LockUpgradeError: new LockUpgradeError('failed', 'order', { cause }),
    LockDeadlockError: new LockDeadlockError('failed', 'order', []),
    LockUnavailableError: new LockUnavailableError('failed', 'order', { cause }),
    LockConfigurationError: new LockConfigurationError('failed', { cause }),
  };

  it.each(Object.entries(errors))('of type %s has this name, its message and the names of its locks', (name, error) => {
    expect(error).toMatchObject({ name, message: 'failed' });
    expect(error.lockName).toBe(name === 'LockConfigurationError' ? '' : 'order');
    expect([cause, undefined]).toContain(error.cause);
    expect(String(error)).toBe(`${name}: failed`);
  });

  it('keeps the cause that it was given', () => {
    const { LockBusyError: _, LockSupersededError: __, LockDeadlockError: ___, ...others } = errors;
    for (const error of Object.values(others)) expect(error.cause).toBe(cause);
  });

  it('is an instance of its own class and of the classes that it extends, and of no other', () => {
    const kinds = { LockError, LockBusyError, LockSupersededError, LockLostError, LockKeyError };
    const kindsOf = (error: unknown) =>
      Object.entries(kinds).flatMap(([name, kind]) => (error instanceof kind ? [name] : []));
    expect(kindsOf(errors.LockSupersededError)).toEqual(['LockError', 'LockBusyError', 'LockSupersededError']);
    expect(kindsOf(errors.LockBusyError)).toEqual(['LockError', 'LockBusyError']);
    expect(kindsOf(errors.LockLostError)).toEqual(['LockError', 'LockLostError']);
    for (const other of [new Error('failed'), undefined, null, 'failed', {}]) expect(kindsOf(other)).toEqual([]);
  });

  it('is recognised when it comes from another copy of the library', () => {
    const fromElsewhere = Object.assign(new Error('lost'), {
      [Symbol.for('nestjs-redis-lock.errors')]: ['LockLostError', 'LockError'],
    });
    expect(fromElsewhere).toBeInstanceOf(LockLostError);
    expect(fromElsewhere).toBeInstanceOf(LockError);
    expect(fromElsewhere).not.toBeInstanceOf(LockBusyError);
    const forged = Object.assign(new Error('lost'), { [Symbol.for('nestjs-redis-lock.errors')]: 'LockLostError' });
    expect(forged).not.toBeInstanceOf(LockLostError);
  });

  it('can be extended by a class of the application, of which only its own errors are instances', () => {
    class OrderLost extends LockLostError {}
    const error = new OrderLost('lost', 'order');
    expect(error).toBeInstanceOf(OrderLost);
    expect(error).toBeInstanceOf(LockLostError);
    expect(errors.LockLostError).not.toBeInstanceOf(OrderLost);
  });
});
