import type { Runtime } from '../../backends/runtime.js';
import { HarmlessLogger } from './harmless-logger.js';
import type { LockLogger } from './lock-logger.js';

const WINDOW = 1_000;
const LINES = 20;

/** Writes at most 20 lines a second and says how many it left out: the log of an outage under ten thousand locks has to stay readable. */
export class RateLimitedLogger implements LockLogger {
  private written = 0;
  private readonly logger: HarmlessLogger;
  private leftOut = 0;
  private since = Number.NEGATIVE_INFINITY;

  constructor(
    logger: LockLogger,
    private readonly runtime: Runtime,
  ) {
    this.logger = new HarmlessLogger(logger);
  }

  log(message: string): void {
    if (this.admits()) this.logger.log(message);
  }

  warn(message: string): void {
    if (this.admits()) this.logger.warn(message);
  }

  error(message: string): void {
    if (this.admits()) this.logger.error(message);
  }

  private admits(): boolean {
    const now = this.runtime.monotonic();
    if (now - this.since >= WINDOW) {
      this.since = now;
      this.written = 0;
    }
    if (this.written++ < LINES) return true;
    if (this.leftOut++ === 0) this.runtime.timer(WINDOW, () => this.summarize());
    return false;
  }

  private summarize(): void {
    this.logger.warn(`${this.leftOut} more lines were left out within ${WINDOW} ms`);
    this.leftOut = 0;
  }
}
