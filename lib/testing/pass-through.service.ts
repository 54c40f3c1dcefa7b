import type { Lease } from '../engine/terms/lease.js';
import type { LockNames } from '../engine/terms/lock-name.js';
import type { AcquisitionTerms, LockOptions } from '../engine/terms/lock-options.js';
import { LockService } from '../service/lock-service.js';

/**
 * A service that locks nothing. Each acquisition gets a separate lock, so no caller waits for another. Bad names are
 * still refused.
 */
export class PassThroughLockService extends LockService {
  private count = 0;

  override acquire(names: LockNames, options?: LockOptions): Promise<Lease> {
    return this.engine.acquire(this.unique(names), options);
  }

  override tryAcquire(names: LockNames, options?: LockOptions): Promise<Lease | null> {
    return this.engine.tryAcquire(this.unique(names), options);
  }

  override withLock<T>(names: LockNames, ...rest: unknown[]): Promise<T> {
    const withLock = super.withLock as (names: LockNames, ...rest: unknown[]) => Promise<T>;
    return withLock.call(this, this.unique(names), ...rest);
  }

  override acquireUnder(names: LockNames, terms: AcquisitionTerms, what: string): Promise<Lease> {
    return super.acquireUnder(this.unique(names), terms, what);
  }

  private unique(names: LockNames): LockNames {
    const own = (name: string) => (typeof name === 'string' && name !== '' ? `${name}#${++this.count}` : name);
    return Array.isArray(names) ? names.map(own) : own(names as string);
  }
}
