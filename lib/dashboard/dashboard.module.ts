import { type DynamicModule, Logger, Module } from '@nestjs/common';
import { getLockServiceToken } from '../nest/redis-lock.constants.js';
import type { LockService } from '../service/lock-service.js';
import { createDashboardController } from './dashboard.controller.js';
import { checkDashboardOptions, type RedisLockDashboardOptions } from './dashboard.options.js';
import { LockBoard } from './lock-board.js';

const DASHBOARD_PATH = 'REDIS_LOCK_DASHBOARD_PATH';

/**
 * A page that shows which locks are held, by whom and since when, who waits, the clients, and recent losses.
 *
 * ```ts
 * @Module({
 *   imports: [
 *     RedisLockModule.forRoot({ connection: 'redis://localhost:6379' }),
 *     RedisLockDashboardModule.forRoot({ path: 'admin/locks', guards: [AdminGuard] }),
 *   ],
 * })
 * export class AppModule {}
 * ```
 *
 * It reads at most one snapshot a second for all who look at it, and none while nobody does. With `readOnly: false`, a lock can be
 * released by force, with a reason that is logged. Works on Express and Fastify.
 *
 * @publicApi
 */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: it is a module of NestJS.
export class RedisLockDashboardModule {
  /**
   * The dashboard under `path`, behind `guards`.
   *
   * ```ts
   * RedisLockDashboardModule.forRoot({ path: 'admin/locks', guards: [AdminGuard], readOnly: false })
   * ```
   *
   * @throws LockConfigurationError without `guards` and without `public: true`, and for a bad option
   */
  static forRoot(options: RedisLockDashboardOptions): DynamicModule {
    checkDashboardOptions(options);
    const { imports = [], name, path } = options;
    const logger = new Logger('RedisLockDashboard');
    return {
      module: RedisLockDashboardModule,
      imports: [...imports],
      controllers: [createDashboardController(options)],
      providers: [
        // NestJS 10 takes two modules for one when the texts of their metadata are the same: this tells dashboards apart.
        { provide: DASHBOARD_PATH, useValue: path },
        {
          provide: LockBoard,
          useFactory: (locks: LockService) => new LockBoard(locks, logger, options),
          inject: [getLockServiceToken(name)],
        },
      ],
    };
  }
}
