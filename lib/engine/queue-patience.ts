import type { Timer } from '../backends/runtime.js';
import type { EngineParts } from './engine-parts.js';
import type { LinkedQueue } from './linked-queue.js';
import type { Waiter } from './waiter.js';

/** A wait longer than this is worth a line in the log. */
const LONG_WAIT = 30_000;

/**
 * Warns once when callers of a queue have been waiting for over 30 s, naming the holder. It keeps an eye on the last in the queue: while
 * that one waits, all before it have waited for longer. A caller that came behind it is looked at in the next 30 s.
 */
export class QueuePatience {
  private timer: Timer | undefined;

  constructor(
    private readonly parts: EngineParts,
    private readonly waiting: LinkedQueue<Waiter>,
    private readonly holder: () => string | undefined,
  ) {}

  watch(): void {
    if (this.timer !== undefined) return;
    const { last } = this.waiting;
    if (last !== undefined) this.timer = this.parts.runtime.timer(LONG_WAIT, () => this.check(last));
  }

  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private check(watched: Waiter): void {
    this.timer = undefined;
    if (watched.settled) return this.watch();
    const { length } = this.waiting;
    const [crowd, longest] = length > 1 ? [`${length} callers wait`, ', the longest'] : ['A caller waits', ''];
    const holder = this.holder() ?? 'an owner not known here';
    this.parts.events.logger.warn(
      `${crowd} for the lock '${watched.name}'${longest} for over ${LONG_WAIT / 1_000} s; held by ${holder}`,
    );
    // Once for this crowd: the queue warns again only after it was empty, and so made anew.
    this.timer = { cancel: () => {} };
  }
}
