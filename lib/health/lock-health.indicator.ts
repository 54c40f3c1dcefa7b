import { Inject, Injectable } from '@nestjs/common';
import { LockService } from '../service/lock-service.js';
import type { LockServiceHealth } from '../service/service-health.js';

/** What a health check answers: an object of the form that @nestjs/terminus takes. @publicApi */
export type LockHealthResult<Key extends string = string> = Record<
  Key,
  { readonly status: 'up' | 'down' } & Omit<LockServiceHealth, 'healthy'>
>;

/**
 * Tells @nestjs/terminus how the locks are: whether Redis answers, messages about releases arrive, renewals are in
 * time, and no lock was lost in the last minute. It needs nothing of terminus, and is for its versions 11 and 12.
 *
 * ```ts
 * @Module({ imports: [TerminusModule], providers: [LockHealthIndicator], controllers: [HealthController] })
 * export class HealthModule {}
 *
 * @Get('health')
 * @HealthCheck()
 * check() {
 *   return this.health.check([() => this.locks.isHealthy('locks')]);
 * }
 * ```
 *
 * terminus 10 would answer 200 in any case. It wants an error:
 * `if (result.locks.status === 'down') throw new HealthCheckError('locks', result)`. For a module with a name:
 * `{ provide: LockHealthIndicator, useFactory: (locks) => new LockHealthIndicator(locks), inject: [getLockServiceToken('name')] }`.
 *
 * @publicApi
 */
@Injectable()
export class LockHealthIndicator {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  /**
   * The state of the locks, as @nestjs/terminus wants it: `{ locks: { status: 'up', … } }`. It never rejects.
   *
   * @param key the name of the result. Default `'locks'`
   */
  async isHealthy<Key extends string = 'locks'>(key = 'locks' as Key): Promise<LockHealthResult<Key>> {
    const { healthy, ...details } = await this.locks.health();
    return { [key]: { status: healthy ? 'up' : 'down', ...details } } as LockHealthResult<Key>;
  }
}
