import { type DynamicModule, Logger, Module, type Provider } from '@nestjs/common';
import { lockServiceTokens, provideLockService } from '../nest/lock-service.providers.js';
import { LockShutdown, LockShutdownModule } from '../nest/lock-shutdown.module.js';
import type { LockService } from '../service/lock-service.js';
import { LockTestingController, type LockTestingOptions } from './lock-testing.controller.js';
import { PassThroughLockService } from './pass-through.service.js';

/** Token of the controller, with or without a name. */
const CONTROLLER = Symbol('LockTestingController');

/**
 * Replaces RedisLockModule in tests. Locks are kept in memory, in a separate store for each application.
 *
 * ```ts
 * const app = await Test.createTestingModule({ imports: [LockTestingModule.forRoot(), OrdersModule] }).compile();
 * const testing = app.get(LockTestingController);
 * await testing.holdByAnother('order:42');
 * ```
 *
 * @publicApi
 */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: a module of NestJS
export class LockTestingModule {
  /**
   * Locks that exclude each other as they do on Redis, and a {@link LockTestingController}.
   *
   * @throws LockConfigurationError when the application starts, naming the option that is wrong
   */
  static forRoot(options: LockTestingOptions = {}): DynamicModule {
    return define(options, ({ locks }) => locks);
  }

  /** Locks nothing: decorated methods, `withLock`, `acquire` and `tryAcquire` work, and never wait. */
  static passThrough(options: LockTestingOptions = {}): DynamicModule {
    return define(options, ({ locks }) => new PassThroughLockService(locks.engine));
  }
}

function define(
  options: LockTestingOptions,
  toService: (testing: LockTestingController) => LockService,
): DynamicModule {
  const { name, isGlobal = true } = options;
  const controller = name === undefined ? LockTestingController : getLockTestingToken(name);
  const providers: Provider[] = [
    {
      provide: CONTROLLER,
      useFactory: (shutdown: LockShutdown) => {
        const testing = new LockTestingController({ logger: new Logger('RedisLock'), ...options });
        shutdown.add({ close: () => testing.close() });
        return testing;
      },
      inject: [LockShutdown],
    },
    { provide: controller, useExisting: CONTROLLER },
    ...provideLockService(name, toService, CONTROLLER),
  ];
  const imports = [LockShutdownModule];
  return {
    module: LockTestingModule,
    global: isGlobal,
    imports,
    providers,
    exports: [controller, ...lockServiceTokens(name)],
  };
}

/**
 * Token of the LockTestingController of the LockTestingModule with this `name`. Without a name, inject it by its class.
 * @publicApi
 */
export function getLockTestingToken(name: string): symbol {
  return Symbol.for(
    `nestjs-redis-lock: no LockTestingController here; import LockTestingModule.forRoot({ name: '${name}' })`,
  );
}
