import { LockBusyError, LockConfigurationError } from '../../engine/errors.js';
import type { Lease } from '../../engine/lease/lease.js';
import type { LockNames } from '../../engine/lock-engine.js';
import type { LockOptions } from '../../engine/terms/lock-options.js';
import type { LockService } from '../../service/lock-service.js';

type Body = (lease: Lease) => unknown;
type Mock = Partial<Pick<LockService, 'withLock' | 'acquire' | 'tryAcquire'>>;

/** What a mock gives out: perhaps nothing at all. */
interface MockLease {
  release?(): unknown;
}

const adapted = new WeakMap<object, LockService>();

/**
 * Lets decorated methods use a mock of LockService that has `withLock`, `acquire` or `tryAcquire`, the first of these that it has.
 *
 * @throws LockConfigurationError when it has none of them
 */
export function adaptMock(mock: Mock, where: string): LockService {
  const known = adapted.get(mock);
  if (known !== undefined) return known;
  const open = opener(mock, where);
  const ends = new WeakMap<object, (outcome: () => unknown) => Promise<unknown>>();
  const adapter = {
    termsOf: (options: LockOptions | undefined) => options ?? {},
    async acquireUnder(names: LockNames, terms: LockOptions) {
      const { lease, run } = await open(names, terms);
      ends.set(lease, run);
      return lease;
    },
    holdWhile: (lease: Lease, body: Body) => ends.get(lease)!(() => body(lease)),
  } as unknown as LockService;
  adapted.set(mock, adapter);
  return adapter;
}

interface Opened {
  readonly lease: Lease;
  /** Runs the body and ends the lock. */
  run(body: () => unknown): Promise<unknown>;
}

function opener(mock: Mock, where: string): (names: LockNames, options: LockOptions) => Promise<Opened> {
  if (typeof mock.withLock === 'function') return (names, options) => openWithLock(mock, names, options, where);
  if (typeof mock.acquire === 'function') {
    return async (names, options) => openLease(await mock.acquire!(names, options));
  }
  if (typeof mock.tryAcquire === 'function') {
    return async (names, options) => {
      const lease = await mock.tryAcquire!(names, options);
      if (lease === null)
        throw new LockBusyError(`${where}: tryAcquire of the mock returned null`, String(names), -1, undefined);
      return openLease(lease);
    };
  }
  throw new LockConfigurationError(
    `${where} did not run, because what replaces LockService has none of withLock, acquire and tryAcquire. Give the mock one of them, or use LockTestingModule of 'nestjs-redis-lock/testing'`,
  );
}

function openLease(given: unknown): Opened {
  const lease = asLease(given);
  return {
    lease,
    async run(body) {
      try {
        return await body();
      } finally {
        await (lease as MockLease).release?.();
      }
    },
  };
}

function openWithLock(mock: Mock, names: LockNames, options: LockOptions, where: string): Promise<Opened> {
  return new Promise((resolve, reject) => {
    let settled: Promise<unknown>;
    const body = (given: unknown) =>
      new Promise<unknown>((end) => {
        const run = (inner: () => unknown) => {
          end(Promise.resolve().then(inner));
          return settled;
        };
        resolve({ lease: asLease(given), run });
      });
    const call = mock.withLock as (...args: unknown[]) => unknown;
    const args = Object.keys(options).length === 0 ? [names, body] : [names, options, body];
    settled = (async () => call.apply(mock, args))();
    settled.then(
      () => reject(new LockConfigurationError(`${where} did not run: withLock of the mock did not call its function`)),
      reject,
    );
  });
}

/** Mocks often give no lease at all. */
function asLease(given: unknown): Lease {
  return (typeof given === 'object' && given !== null ? given : {}) as Lease;
}
