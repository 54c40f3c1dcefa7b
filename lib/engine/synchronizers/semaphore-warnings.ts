import type { SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { Services } from '../services.js';
import type { Synchronizer } from './synchronizer.js';

/** How many names are remembered, to warn only once about each. */
const MOST_REMEMBERED = 1_000;

/** Warns once about each semaphore that does not have the permits which its user expects. */
export class SemaphoreWarnings {
  /** The keys of semaphores that were found missing. */
  private readonly missing = new Set<string>();
  /** The keys of semaphores whose number of permits was compared. */
  private readonly compared = new Set<string>();

  constructor(private readonly services: Pick<Services, 'backend' | 'events'>) {}

  /** Its permits were never set. Otherwise all of them would seem to be taken. */
  isMissing({ name, key, what, method }: Synchronizer): void {
    if (!isFirst(this.missing, key)) return;
    const { backend, events } = this.services;
    events.logger.warn(
      `There is no ${what.slice('the '.length)} in ${backend.description}, so no permit can be acquired. Set its permits once, with ${method}('${name}', { permits: n }) or trySetPermits(n)`,
    );
  }

  /** Compares the number of its permits with the option `permits`, in the background. */
  exists({ key, what, method, initial }: Synchronizer, backend: SynchronizerBackend): void {
    if (initial === undefined || backend.inspect === undefined || !isFirst(this.compared, key)) return;
    backend.inspect(key).then(
      (state) => {
        if (state?.total === undefined || state.total === initial) return;
        this.services.events.logger.warn(
          `${method}: the option permits is ${initial}, but ${what} was created with ${state.total} permits, and keeps them. Change the option, or call addPermits(${initial - state.total}) once`,
        );
      },
      () => {}, // Only the warning is missing then.
    );
  }
}

function isFirst(keys: Set<string>, key: string): boolean {
  if (keys.has(key)) return false;
  if (keys.size >= MOST_REMEMBERED) keys.clear();
  keys.add(key);
  return true;
}
