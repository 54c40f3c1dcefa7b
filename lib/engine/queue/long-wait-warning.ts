import type { Timer } from '../../backends/runtime.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import type { LinkedQueue } from '../collections/linked-queue.js';
import type { Waiter } from '../waiting/waiter.js';

/** A wait longer than this is worth a line in the log. */
const LONG_WAIT = 30_000;

/**
 * Warns when a caller of a queue has been waiting for over 30 s, naming the holder, at most once in 30 s, and for no caller twice. It keeps an
 * eye on the last in the queue, and on the first, which may wait while others come and leave behind it: while the last one waits, all before
 * it have waited for longer. Callers that come later are looked at in the next 30 s.
 */
export class LongWaitWarning {
  private timer: Timer | undefined;
  /** Those for whom there was a warning. */
  private warned: WeakSet<Waiter> | undefined;

  constructor(
    private readonly context: AcquisitionContext,
    private readonly waiting: LinkedQueue<Waiter>,
    private readonly holder: () => string | undefined,
  ) {}

  watch(): void {
    if (this.timer !== undefined) return;
    const { first, last } = this.waiting;
    if (first === undefined || last === undefined) return;
    this.timer = this.context.runtime.timer(LONG_WAIT, () => this.check(first, last));
  }

  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private check(first: Waiter, last: Waiter): void {
    this.timer = undefined;
    const waiter = last.settled ? first : last;
    if (!waiter.settled && !this.warned?.has(waiter)) this.warn(waiter);
    this.watch();
  }

  private warn(waiter: Waiter): void {
    this.warned ??= new WeakSet();
    for (const waiting of this.waiting) {
      this.warned.add(waiting);
      if (waiting === waiter) break;
    }
    const { length } = this.waiting;
    const [crowd, longest] = length > 1 ? [`${length} callers wait`, ', the longest'] : ['A caller waits', ''];
    const holder = this.holder() ?? 'an owner not known here';
    this.context.events.logger.warn(
      `${crowd} for the lock '${waiter.name}'${longest} for over ${LONG_WAIT / 1_000} s; held by ${holder}`,
    );
  }
}
