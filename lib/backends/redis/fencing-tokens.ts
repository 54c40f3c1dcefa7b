import type { Acquired } from '../lock-backend.js';

/** The highest fencing token that this process has seen. A server that lost its data, or whose clock was set back, must give higher ones. */
export class FencingTokens {
  private highest = 0;

  /** As the scripts take it. */
  get seen(): string {
    return String(this.highest);
  }

  /** Notes what a script gave. */
  acquired(token: number, reserved: number): Acquired {
    this.highest = Math.max(this.highest, token + reserved);
    return { acquired: true, token, reserved };
  }
}
