import type { Runtime } from '../../backends/runtime.js';

/** Receives warnings and errors. NestJS's Logger and the console both fit. @publicApi */
export interface LockLogger {
  /** Receives a line when the service has connected to its Redis, and when an outage is over. Optional. */
  log?(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** Wraps a user's logger, so that its exceptions and rejected promises have no effect. */
export class HarmlessLogger implements LockLogger {
  constructor(private readonly logger: LockLogger) {}

  log(message: string): void {
    harmless(() => this.logger.log?.(message));
  }

  warn(message: string): void {
    harmless(() => this.logger.warn(message));
  }

  error(message: string): void {
    harmless(() => this.logger.error(message));
  }
}

/**
 * Calls user code, which may throw.
 *
 * @param failed receives the error, even if the call returns a promise that is rejected later
 */
export function harmless(call: () => unknown, failed: (error: unknown) => void = () => {}): void {
  try {
    const result = call();
    if (typeof (result as PromiseLike<unknown> | undefined | null)?.then === 'function')
      Promise.resolve(result).catch(failed);
  } catch (error) {
    failed(error);
  }
}

/** Describes anything that user code can throw. */
export function describeThrown(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'a value that cannot be shown';
  }
}

const WINDOW = 1_000;
const LINES = 20;

/**
 * Writes at most 20 lines a second, and reports how many were left out. This keeps the log readable when an outage
 * affects ten thousand locks.
 */
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
