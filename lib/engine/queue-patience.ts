import type { Timer } from '../backends/runtime.js';
import type { EngineParts } from './engine-parts.js';
import type { LinkedQueue } from './linked-queue.js';
import type { Waiter } from './waiter.js';

/** A wait longer than this is worth a line in the log. */
const LONG_WAIT = 30_000;

/** Warns once when callers of a queue have been waiting for over 30 s, naming the holder. */
export class QueuePatience {
  private timer: Timer | undefined;

  constructor(
    private readonly parts: EngineParts,
    private readonly waiting: LinkedQueue<Waiter>,
    private readonly holder: () => string | undefined,
  ) {}

  watch(): void {
    this.timer ??= this.parts.runtime.timer(LONG_WAIT, () => this.check());
  }

  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private check(): void {
    this.timer = undefined;
    const oldest = this.waiting.first;
    if (oldest === undefined) return;
    const waited = this.parts.runtime.monotonic() - oldest.since;
    if (waited < LONG_WAIT) {
      this.timer = this.parts.runtime.timer(LONG_WAIT - waited, () => this.check());
      return;
    }
    const crowd = this.waiting.length > 1 ? `${this.waiting.length} callers wait` : 'A caller waits';
    this.parts.events.logger.warn(
      `${crowd} for the lock '${oldest.name}', the longest for ${Math.round(waited / 1000)} s; held by ${this.holder() ?? 'an owner not known here'}`,
    );
    // Once for this crowd: the queue warns again only after it was empty, and so made anew.
    this.timer = { cancel: () => {} };
  }
}
