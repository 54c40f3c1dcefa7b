import { Inject, Injectable } from '@nestjs/common';
import { LockService } from '../service/lock-service.js';
import type { LockServiceHealth } from '../service/service-health.js';

/** The result of a health check, in the form that @nestjs/terminus expects. @publicApi */
export type LockHealthResult<Key extends string = string> = Record<
  Key,
  { readonly status: 'up' | 'down' } & Omit<LockServiceHealth, 'healthy'>
>;

/**
 * A health indicator for @nestjs/terminus 11 and 12. It checks whether locks can be acquired: see
 * `LockService.health`. Use it for a readiness check, but not for a liveness check, since a restart repairs neither
 * Redis nor the user's rights, and ends leases that are held. It does not import terminus.
 *
 * ```ts
 * @Module({ imports: [TerminusModule], providers: [LockHealthIndicator], controllers: [HealthController] })
 * export class HealthModule {}
 *
 * @Get('ready')
 * @HealthCheck()
 * check() {
 *   return this.health.check([() => this.locks.isHealthy('locks')]);
 * }
 * ```
 *
 * Terminus 10 answers 200 even if the result is `down`. Throw the error yourself:
 * `if (result.locks.status === 'down') throw new HealthCheckError('locks', result)`. For a module with a name, provide
 * `LockHealthIndicator` with `useFactory: (locks) => new LockHealthIndicator(locks)` and
 * `inject: [getLockServiceToken('name')]`.
 *
 * @publicApi
 */
@Injectable()
export class LockHealthIndicator {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  /**
   * The state of the locks for @nestjs/terminus: `{ locks: { status: 'up', … } }`. It never rejects.
   *
   * @param key the name of the result. Default `'locks'`
   */
  async isHealthy<Key extends string = 'locks'>(key = 'locks' as Key): Promise<LockHealthResult<Key>> {
    const { healthy, ...details } = await this.locks.health();
    return { [key]: { status: healthy ? 'up' : 'down', ...details } } as LockHealthResult<Key>;
  }
}
