import type { LockService } from '../core.js';
import type { BoardEvent } from './board-snapshot.js';

const MOST_EVENTS = 100;

/** The recent problems of this process, and the locks that were released by force here, newest first. */
export class RecentEvents {
  private events: readonly BoardEvent[] = [];
  private json = '[]';
  private readonly stop: (() => void)[];

  constructor(locks: LockService) {
    this.stop = [
      locks.engine.observe('lost', ({ name, group, method, error }) =>
        this.add({ kind: 'lost', name, method: method || group, text: error.message }),
      ),
      locks.on('failed', ({ outcome, name, group, method, error }) => {
        if (outcome === 'deadlock') this.add({ kind: 'deadlock', name, method: method || group, text: error.message });
      }),
    ];
  }

  get count(): number {
    return this.events.length;
  }

  /** All recorded events, as JSON. */
  get text(): string {
    return this.json;
  }

  add(event: Omit<BoardEvent, 'at'>): void {
    this.events = [{ at: Date.now(), ...event }, ...this.events].slice(0, MOST_EVENTS);
    this.json = JSON.stringify(this.events);
  }

  close(): void {
    for (const stop of this.stop) stop();
  }
}
