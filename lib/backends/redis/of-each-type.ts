import type { LockType } from '../lock-backend.js';

/** Makes something for each lock type. */
export function ofEachType<T>(make: (type: LockType) => T): Record<LockType, T> {
  return {
    reentrant: make('reentrant'),
    fenced: make('fenced'),
    fair: make('fair'),
    read: make('read'),
    write: make('write'),
    flight: make('flight'),
  };
}
