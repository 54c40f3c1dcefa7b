import { LockBusyError, LockConfigurationError } from '../../engine/errors.js';
import { checkResult } from '../../engine/scope/body-result.js';
import type { LockNames } from '../../engine/terms/lock-name.js';
import type { LockOptions } from '../../engine/terms/lock-options.js';
import type { LockService } from '../../service/lock-service.js';

type Mock = Partial<Pick<LockService, 'withLock' | 'acquire' | 'tryAcquire'>>;

/** The result of a mock, if there is one. */
interface MockLease {
  release?(): unknown;
}

const SILENT = { warnOnce: () => {} };

const adapted = new WeakMap<object, LockService>();

/**
 * Lets decorated methods use a mock of LockService. They call the first of `withLock`, `acquire` and `tryAcquire` that
 * the mock has.
 *
 * @throws LockConfigurationError when it has none of them
 */
export function adaptMock(mock: Mock, where: string): LockService {
  const known = adapted.get(mock);
  if (known !== undefined) return known;
  const open = opener(mock, where);
  const adapter = {
    termsOf: (options: LockOptions | undefined) => options ?? {},
    acquireUnder: async (names: LockNames, options: LockOptions, where: string): Promise<MockedLock> => {
      // Most mocks expect a single key, not a list.
      const wanted = Array.isArray(names) && names.length === 1 ? names[0] : names;
      return { held: await open(wanted, options, where), where };
    },
    holdWhile: ({ held, where }: MockedLock, body: () => unknown) =>
      held.run(async () => {
        const result = await body();
        checkResult(result, { what: where, isMethod: true, body }, SILENT);
        return result;
      }),
    ...SILENT,
  } as unknown as LockService;
  adapted.set(mock, adapter);
  return adapter;
}

/**
 * One acquisition. It stands for the lease, because a mock may return the same lease every time.
 */
interface Held {
  /** Runs the body and ends the lock. */
  run(body: () => unknown): Promise<unknown>;
}

interface MockedLock {
  readonly held: Held;
  readonly where: string;
}

type Open = (names: LockNames, options: LockOptions, where: string) => Promise<Held>;

function opener(mock: Mock, where: string): Open {
  if (typeof mock.withLock === 'function') return (...args) => openWithLock(mock, ...args);
  if (typeof mock.acquire === 'function') {
    return async (names, options) => openLease(await mock.acquire!(names, options));
  }
  if (typeof mock.tryAcquire === 'function') {
    return async (names, options, where) => {
      const lease = await mock.tryAcquire!(names, options);
      if (lease === null)
        throw new LockBusyError(`${where}: tryAcquire of the mock returned null`, String(names), -1, undefined);
      return openLease(lease);
    };
  }
  throw new LockConfigurationError(
    `${where} did not run, because the mock of LockService has none of withLock, acquire and tryAcquire. Give the mock one of them, or use LockTestingModule of 'nestjs-redis-lock/testing'`,
  );
}

function openLease(lease: MockLease | null | undefined): Held {
  return {
    async run(body) {
      try {
        return await body();
      } finally {
        await lease?.release?.();
      }
    },
  };
}

function openWithLock(mock: Mock, names: LockNames, options: LockOptions, where: string): Promise<Held> {
  return new Promise((resolve, reject) => {
    let settled: Promise<unknown>;
    const body = () =>
      new Promise<unknown>((end) => {
        const run = (inner: () => unknown) => {
          end(Promise.resolve().then(inner));
          return settled;
        };
        resolve({ run });
      });
    const call = mock.withLock as (...args: unknown[]) => unknown;
    const args = Object.keys(options).length === 0 ? [names, body] : [names, options, body];
    settled = (async () => call.apply(mock, args))();
    settled.then(
      () =>
        reject(
          new LockConfigurationError(
            `${where} did not run: withLock of the mock did not call its function, which is the last argument. Let it do so, or mock the method itself`,
          ),
        ),
      reject,
    );
  });
}
