import type { LockLogger } from './lock-logger.js';

/** A logger that may fail, by an exception or a rejected promise, without harm to what it is told of. */
export class HarmlessLogger implements LockLogger {
  constructor(private readonly logger: LockLogger) {}

  warn(message: string): void {
    harmless(() => this.logger.warn(message));
  }

  error(message: string): void {
    harmless(() => this.logger.error(message));
  }
}

/**
 * Calls code of the user, whatever it throws.
 *
 * @param failed is told of the error, also of one that comes later, where the call gives a promise or something like it
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
