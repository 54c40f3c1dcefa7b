import type { RequestId, SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { SemaphoreType } from '../../backends/synchronizer-state.js';

/**
 * Applies changes of one kind to one object in one request, and returns a reply for each of them. Changes with the same function are sent
 * together.
 */
export type Mutation<Item, Reply> = (
  backend: SynchronizerBackend,
  key: string,
  items: readonly Item[],
  request: RequestId,
) => Promise<readonly Reply[]>;

/** Permits come back. */
export const releasePermits: Mutation<number, void> = async (backend, key, amounts, request) => {
  await backend.addPermits(key, sum(amounts), request);
  return amounts.map(() => undefined);
};

/** There are more or fewer permits from now on. */
const addPermits =
  (type: SemaphoreType): Mutation<number, void> =>
  async (backend, key, amounts, request) => {
    await backend.addPermits(key, sum(amounts), request, type);
    return amounts.map(() => undefined);
  };
export const addCountedPermits = addPermits('semaphore');
export const addLeasedPermits = addPermits('permit-expirable-semaphore');

export const addPermitsIfExists: Mutation<number, boolean> = async (backend, key, amounts, request) => {
  const exists = await backend.addPermitsIfExists(key, sum(amounts), request);
  return amounts.map(() => exists);
};

export const drainPermits: Mutation<void, number> = async (backend, key, calls, request) => {
  const drained = await backend.drainPermits(key, request);
  return calls.map((_, index) => (index === 0 ? drained : 0));
};

/** Only the first call can set the permits, if nobody did before. */
const trySetPermits =
  (type: SemaphoreType): Mutation<number, boolean> =>
  async (backend, key, [permits, ...others], request) => {
    return [await backend.trySetPermits(key, permits, request, type), ...others.map(() => false)];
  };
export const trySetCountedPermits = trySetPermits('semaphore');
export const trySetLeasedPermits = trySetPermits('permit-expirable-semaphore');

/** The last call wins. */
export const setPermits: Mutation<number, void> = async (backend, key, amounts, request) => {
  await backend.setPermits(key, amounts[amounts.length - 1], request);
  return amounts.map(() => undefined);
};

export const giveLeasedPermits: Mutation<readonly string[], readonly boolean[]> = async (
  backend,
  key,
  lists,
  request,
) => {
  const given = [...(await backend.giveLeasedPermits(key, lists.flat(), request))];
  return lists.map(({ length }) => given.splice(0, length));
};

/** Only the first call can set the count, if there was none. */
export const trySetCount: Mutation<number, boolean> = async (backend, key, [count, ...others], request) => {
  return [await backend.trySetCount(key, count, request), ...others.map(() => false)];
};

export const countDown: Mutation<number, void> = async (backend, key, steps, request) => {
  await backend.countDown(key, sum(steps), request);
  return steps.map(() => undefined);
};

export const deleteLatch: Mutation<void, boolean> = async (backend, key, [, ...others], request) => {
  return [await backend.deleteLatch(key, request), ...others.map(() => false)];
};

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
