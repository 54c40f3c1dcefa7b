import type { LockLogger } from './lock-logger.js';

/** Wraps a logger of the user: its exceptions and rejected promises have no effect. */
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
 * Calls code of the user, which may throw.
 *
 * @param failed is given the error, also when the call returns a promise that is rejected later
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
