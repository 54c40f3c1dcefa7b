import { BackendError, type LockBackend } from '../../../lib/backends/lock-backend.js';
import { ticketOwner } from '../../../lib/backends/owner-ids.js';
import type { HolderClient } from '../../../lib/engine/describe-holder.js';
import {
  LockAbortedError,
  LockKeyError,
  LockSupersededError,
  LockUnavailableError,
} from '../../../lib/engine/errors.js';
import {
  type KnownHolder,
  lockBusyError,
  ofClient,
  permanentError,
  shutdownError,
  supersededError,
  unavailableError,
} from '../../../lib/engine/wait/wait-errors.js';
import { ms } from '../../support/lock-world.js';

const CLIENT: HolderClient = {
  clientId: 'other',
  application: 'shop',
  host: 'web-1',
  pid: 7,
  version: '',
  group: '',
  method: 'Orders.pay',
};
const backend = { description: 'redis' } as LockBackend;
const broken = { description: 'redis', connectionError: new Error('ECONNREFUSED') } as LockBackend;

describe('the error of a busy lock', () => {
  const errorOf = (holder: Partial<KnownHolder>, terms: { waitTime?: number; dropsBusy?: boolean } = {}) =>
    lockBusyError(
      { name: 'order', terms: { waitTime: ms(terms.waitTime ?? 0), dropsBusy: terms.dropsBusy } },
      { holder: 'other:1', here: false, remaining: 40, ...holder },
    );

  it('carries what is known of the holder', () => {
    const error = errorOf({ fixed: true, client: CLIENT });
    expect(error).toMatchObject({ lockName: 'order', remainingTime: 40, holder: 'other:1', fixedLease: true });
    expect(error.holderClient).toBe(CLIENT);
    expect(errorOf({}).fixedLease).toBe(false);
  });

  it.each<[Partial<KnownHolder>, string]>([
    [{}, "The lock 'order' is busy; held by other:1, its lease ends in 40 ms unless renewed"],
    [{ fixed: true }, "The lock 'order' is busy; held by other:1, its lease ends in 40 ms"],
    [{ remaining: 0 }, "The lock 'order' is busy; held by other:1, its lease ends in 0 ms unless renewed"],
    [{ remaining: -1 }, "The lock 'order' is busy; held by other:1"],
    [{ remaining: -1, holder: undefined }, "The lock 'order' is busy; held by another owner"],
    [{ remaining: -1, here: true, client: CLIENT }, "The lock 'order' is busy; held by other:1 (this process)"],
    [{ remaining: -1, client: CLIENT }, "The lock 'order' is busy; held by other:1 of 'shop'"],
    [
      { remaining: -1, unrecorded: 'a Redisson client' },
      "The lock 'order' is busy; held by other:1 of a Redisson client",
    ],
  ])('says who holds the lock, and for how long: %j', (holder, message) => {
    expect(errorOf(holder).message).toBe(message);
  });

  it('says that a detached lock waits to be adopted', () => {
    const holder = ticketOwner('other', 'secret');
    expect(errorOf({ holder, remaining: -1 }).message).toBe(
      `The lock 'order' is busy; held by ${holder} (detached, waiting to be adopted)`,
    );
  });

  it('does not say that a detached lock may be renewed, because nobody renews it', () => {
    const holder = ticketOwner('other', 'secret');
    expect(errorOf({ holder }).message).toBe(
      `The lock 'order' is busy; held by ${holder} (detached, waiting to be adopted), its lease ends in 40 ms`,
    );
  });

  it('says how long the caller has waited, if it did', () => {
    expect(errorOf({ remaining: -1 }, { waitTime: 1 }).message).toBe(
      "The lock 'order' is busy: not free within 1 ms; held by other:1",
    );
  });

  it('has no stack trace if nobody sees it, and leaves the traces of other errors alone', () => {
    const { stackTraceLimit } = Error;
    expect(errorOf({}, { dropsBusy: true }).stack).not.toContain('\n    at ');
    expect(Error.stackTraceLimit).toBe(stackTraceLimit);
    expect(errorOf({}).stack).toContain('\n    at ');
  });
});

describe('the error of a caller', () => {
  const failure = (kind: BackendError['kind'], cause?: Error) =>
    new BackendError('no answer in time', kind, 'unknown', { cause });

  it('whose place was taken by a later one names the holder', () => {
    const error = supersededError('order', 40, 'other:1', CLIENT);
    expect(error).toBeInstanceOf(LockSupersededError);
    expect(error).toMatchObject({ lockName: 'order', remainingTime: 40, holder: 'other:1', fixedLease: false });
    expect(error.holderClient).toBe(CLIENT);
  });

  it('that got no answer says for how long, or why', () => {
    const waiter = { name: 'order', terms: { waitTime: ms(300) } };
    const silent = unavailableError(waiter, backend);
    expect(silent).toBeInstanceOf(LockUnavailableError);
    expect(silent.message).toBe("The lock 'order' could not be acquired: redis: no answer within 300 ms");
    const cause = failure('unavailable');
    const failed = unavailableError({ ...waiter, notServed: 'No permit' }, backend, cause);
    expect(failed.message).toBe('No permit: no answer in time');
    expect(failed.cause).toBe(cause);
    expect(unavailableError(waiter, broken, cause).message).toBe(
      "The lock 'order' could not be acquired: no answer in time (ECONNREFUSED)",
    );
  });

  it('that no other attempt can help is one of the key, or of the backend', () => {
    const ofKey = permanentError({ name: 'order' }, backend, failure('key'));
    expect(ofKey).toBeInstanceOf(LockKeyError);
    expect(ofKey.message).toBe("The lock 'order' cannot be used: no answer in time");
    expect((ofKey as LockKeyError).cause).toBeInstanceOf(BackendError);
    const semaphore = { name: 'mail', what: "the semaphore 'mail'" };
    expect(permanentError(semaphore, backend, failure('key')).message).toMatch(/^The semaphore 'mail' cannot be used/);
    const denied = permanentError({ name: 'order', notServed: 'No permit' }, backend, failure('denied'));
    expect(denied).toBeInstanceOf(LockUnavailableError);
    expect(denied.message).toBe('No permit: no answer in time');
    expect(permanentError({ name: 'order' }, broken, failure('unavailable')).message).toContain('(ECONNREFUSED)');
  });

  it('that comes during shutdown says so', () => {
    const error = shutdownError('acquire()', 'order');
    expect(error).toBeInstanceOf(LockAbortedError);
    expect(error.message).toMatch(/^acquire\(\): the lock service is shutting down/);
    expect(error.lockName).toBe('order');
  });

  it('names the application of a client rather than that its record is missing', () => {
    expect(ofClient(CLIENT, 'a Redisson client')).toBe(" of 'shop'");
    expect(ofClient(undefined, 'a Redisson client')).toBe(' of a Redisson client');
    expect(ofClient(undefined, undefined)).toBe('');
  });
});
