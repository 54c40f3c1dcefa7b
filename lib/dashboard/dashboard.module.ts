import { type DynamicModule, Logger, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { LockService } from '../core.js';
import { LockConfigurationError } from '../engine/errors.js';
import { getLockServiceToken } from '../index.js';
import { createDashboardController } from './dashboard.controller.js';
import { checkDashboardOptions, type RedisLockDashboardOptions } from './dashboard.options.js';
import { LockBoard } from './lock-board.js';

const DASHBOARD_PLACE = 'REDIS_LOCK_DASHBOARD_PLACE';
let dashboards = 0;

/**
 * A page that shows which locks are held, by whom and since when, who waits for them, all clients, and recent losses.
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
 * It reads at most one snapshot a second for all viewers, and none without viewers. With `readOnly: false`, a lock can
 * be released by force, and the reason is logged. It works on Express and Fastify.
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
   * @throws LockConfigurationError without `guards` and without `public: true`, and for a bad option. When the
   *   application starts, also if another dashboard has the same path
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
        // NestJS 10 treats two modules with the same metadata text as one. This value makes the texts
        // different.
        { provide: DASHBOARD_PLACE, useValue: { path, number: ++dashboards } },
        {
          provide: LockBoard,
          useFactory: (locks: LockService, modules: ModulesContainer) => {
            refuseSamePath(path, modules);
            return new LockBoard(locks, logger, options);
          },
          inject: [getLockServiceToken(name), ModulesContainer],
        },
      ],
    };
  }
}

/** NestJS would serve only the first of them, with its guards, and silently ignore the other. */
function refuseSamePath(path: string, modules: ModulesContainer): void {
  const places = [...modules.values()]
    .filter(({ metatype }) => metatype === RedisLockDashboardModule)
    .map(({ providers }) => providers.get(DASHBOARD_PLACE)?.instance as { path: string } | undefined);
  if (places.filter((other) => other !== undefined && routeOf(other.path) === routeOf(path)).length > 1)
    throw new LockConfigurationError(
      `RedisLockDashboardModule.forRoot: two dashboards of this application have the path '${path}', and only the first would be served; give each its own path, and import the module returned by forRoot once`,
    );
}

/** Express ignores the case of paths. */
function routeOf(path: string): string {
  return path.replace(/^\/|\/$/g, '').toLowerCase();
}
