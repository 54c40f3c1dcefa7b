import type { LockService } from '../../lib/nest/lock.service.js';
import { until } from '../support/until.js';

interface Line {
  readonly waiting: Set<unknown>;
  readonly triers: Set<unknown>;
  readonly asking: unknown;
  readonly contention: { readonly resting: boolean; readonly subscription?: { readonly ready: Promise<void> } };
}

interface Inside {
  readonly lines: Map<string, Line>;
  readonly lanes: Map<string, unknown>;
}

/** What a service holds for its semaphores and latches. */
export function inside(locks: LockService): Inside {
  return locks.engine.synchronizers as unknown as Inside;
}

/** Settles when so many callers of this service wait, and have nothing more to do until they are woken. */
export async function asleep(locks: LockService, callers = 1): Promise<void> {
  const { lines } = inside(locks);
  const waiting = () => [...lines.values()].filter((line) => line.waiting.size > 0);
  await until(() => waiting().reduce((sum, line) => sum + line.waiting.size, 0) === callers);
  await Promise.all(waiting().map((line) => until(() => line.contention.subscription !== undefined)));
  await Promise.all(waiting().map((line) => line.contention.subscription?.ready));
  await until(() => waiting().every((line) => line.contention.resting && line.asking === undefined));
}

/** Whether a promise has settled yet. */
export function watch(promise: Promise<unknown>): { done: boolean } {
  const watched = { done: false };
  const end = () => {
    watched.done = true;
  };
  promise.then(end, end);
  return watched;
}
