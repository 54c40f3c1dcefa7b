import { setImmediate as turn } from 'node:timers/promises';

/** A critical section that notices if two callers are inside at once. Tests can keep callers inside. */
export class Section {
  private inside = 0;
  private door: Promise<void> = Promise.resolve();
  /** The largest number of callers that were inside at the same time. */
  most = 0;
  /** How many callers have entered. */
  entered = 0;

  /** Enters, stays for a few turns of the event loop (or until the door opens), and leaves. */
  async visit<T>(result?: T): Promise<T | undefined> {
    this.enter();
    try {
      for (let i = 0; i < 3; i++) await turn();
      await this.door;
      return result;
    } finally {
      this.leave();
    }
  }

  enter(): void {
    this.entered++;
    this.most = Math.max(this.most, ++this.inside);
  }

  leave(): void {
    this.inside--;
  }

  get occupied(): boolean {
    return this.inside > 0;
  }

  /** Whoever is inside stays until the returned function is called. */
  shut(): () => void {
    let open!: () => void;
    this.door = new Promise((resolve) => {
      open = resolve;
    });
    return open;
  }
}
