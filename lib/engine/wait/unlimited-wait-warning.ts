import type { LockLogger } from '../events/lock-logger.js';
import type { Caller } from './caller.js';

/** Warns, once in each service, of a caller that waits without a limit although nobody has chosen that. */
export class UnlimitedWaitWarning {
  /** @param isDue false if the service has a waitTime, or needs none. It becomes false with the warning */
  constructor(
    public isDue: boolean,
    private readonly logger: LockLogger,
  ) {}

  /** @param caller waits for something that others hold */
  check({ triesOnce, mayLeave, terms, what }: Caller<never>): void {
    if (!this.isDue || triesOnce || mayLeave || terms.standsBy || terms.choseWaitTime) return;
    this.isDue = false;
    this.logger.warn(
      `A caller waits for ${what} without a limit, because neither the call nor RedisLockModule sets a waitTime. It would even wait for a client that has gone. Set waitTime of RedisLockModule (Infinity, if that is what you want). This is logged once`,
    );
  }
}
