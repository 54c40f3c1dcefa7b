import type { Services } from '../services.js';
import type { Synchronizer } from './synchronizer.js';

/** How many names are remembered, to warn only once about each. */
const MOST_REMEMBERED = 1_000;

/**
 * Warns once about each semaphore whose permits were never set. Otherwise all of its permits would seem to be taken.
 */
export class MissingSemaphoreWarning {
  /** The keys that were warned about. */
  private readonly warned = new Set<string>();

  constructor(private readonly services: Pick<Services, 'backend' | 'events'>) {}

  warn({ name, key, what, method }: Synchronizer): void {
    if (this.warned.has(key)) return;
    if (this.warned.size >= MOST_REMEMBERED) this.warned.clear();
    this.warned.add(key);
    const { backend, events } = this.services;
    events.logger.warn(
      `There is no ${what.slice('the '.length)} in ${backend.description}, so no permit can be acquired. Set its permits once, with ${method}('${name}', { permits: n }) or trySetPermits(n)`,
    );
  }
}
