import type { HeldType } from '../lock-backend.js';

/** Makes something for each lock type. */
export function ofEachType<T>(make: (type: HeldType) => T): Record<HeldType, T> {
  return {
    reentrant: make('reentrant'),
    fenced: make('fenced'),
    fair: make('fair'),
    read: make('read'),
    write: make('write'),
    flight: make('flight'),
    permits: make('permits'),
  };
}
