import { BackendError } from '../backends/backend-error.js';
import type { LockBackend } from '../backends/lock-backend.js';

/** Methods that ask no server. */
const LOCAL: readonly (string | symbol)[] = ['canAcquireTogether', 'subscribe', 'listenToClient', 'close'];

/** A backend whose calls fail, as those to a Redis that is down, while `isDown()`. */
export function failingBackend(backend: LockBackend, isDown: () => boolean): LockBackend {
  const synchronizers = backend.synchronizers && failing(backend.synchronizers, isDown);
  return failing(backend, isDown, { synchronizers });
}

function failing<T extends object>(target: T, isDown: () => boolean, others: Partial<T> = {}): T {
  return new Proxy(target, {
    get(_, property) {
      if (property in others) return others[property as keyof T];
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) =>
        isDown() && !LOCAL.includes(property) ? Promise.reject(down()) : value.apply(target, args);
    },
  });
}

function down(): BackendError {
  return new BackendError('failBackend() was called in this test', 'unavailable', 'refused');
}
