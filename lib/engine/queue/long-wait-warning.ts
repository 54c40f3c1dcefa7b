import type { Timer } from '../../backends/runtime.js';
import type { Linked, LinkedQueue } from '../collections/linked-queue.js';
import type { Services } from '../services.js';
import type { Caller } from '../wait/caller.js';

/** A wait longer than this, in milliseconds, is logged. */
const LONG_WAIT = 30_000;

/**
 * Warns when a caller of a queue has waited for over 30 s, and says why. It warns at most once every 30 s, and
 * only once about the same caller.
 *
 * A timer of 30 s remembers the first and the last waiter of the queue. If the last one still waits when the timer
 * fires, all waiters ahead of it have waited at least as long. Otherwise the first one may still be waiting, although
 * others behind it have come and left. Callers that arrive while a timer runs are checked by the next one, so a caller
 * is warned about after 30 to 60 s.
 */
export class LongWaitWarning<Queued extends Caller<never> & Linked<Queued>> {
  private timer: Timer | undefined;
  /** Waiters that were already warned about. */
  private warned: WeakSet<Queued> | undefined;

  constructor(
    private readonly services: Pick<Services, 'events' | 'presence' | 'runtime'>,
    private readonly waiting: LinkedQueue<Queued>,
    private readonly describeObstacle: (write: (obstacle: string) => void) => Promise<void>,
  ) {}

  /** Starts the timer, unless it is running already. */
  watch(): void {
    if (this.timer !== undefined) return;
    const { first, last } = this.waiting;
    if (first === undefined || last === undefined) return;
    this.timer = this.services.runtime.timer(LONG_WAIT, () => this.check(first, last));
    this.services.presence.noticed();
  }

  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private check(first: Queued, last: Queued): void {
    this.timer = undefined;
    const waiter = last.settled ? first : last;
    if (!waiter.settled && !waiter.terms.standsBy && !this.warned?.has(waiter)) this.warn(waiter);
    this.watch();
  }

  private warn(waiter: Queued): void {
    this.warned ??= new WeakSet();
    for (const waiting of this.waiting) {
      this.warned.add(waiting);
      if (waiting === waiter) break;
    }
    const { length } = this.waiting;
    const [waiters, longest] = length > 1 ? [`${length} callers wait`, ', the longest'] : ['A caller has waited', ''];
    const { events } = this.services;
    const warning = this.describeObstacle((obstacle) =>
      events.logger.warn(`${waiters} for ${waiter.what}${longest} for over ${LONG_WAIT / 1_000} s; ${obstacle}`),
    );
    events.unawaited(warning);
  }
}
