import { ConfigurableModuleBuilder, type DynamicModule, Logger, Module } from '@nestjs/common';
import { LockConfigurationError } from '../engine/errors.js';
import { nodeRuntime } from '../engine/node-runtime.js';
import { createLockServiceWith } from '../service/create-lock-service.js';
import type { LockService } from '../service/lock-service.js';
import type { RedisLockOptions } from '../service/redis-lock-options.js';
import { lockServiceTokens, provideLockService } from './lock-service.providers.js';
import { LockShutdownModule } from './lock-shutdown.module.js';
import { REDIS_LOCK_OPTIONS } from './redis-lock.constants.js';
import type { RedisLockAsyncOptions, RedisLockFactoryOptions } from './redis-lock-async.options.js';

type ModuleOptions = Pick<RedisLockOptions, 'name' | 'isGlobal'>;

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<RedisLockFactoryOptions>({
  optionsInjectionToken: REDIS_LOCK_OPTIONS,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createRedisLockOptions')
  .setExtras<ModuleOptions>({ name: undefined, isGlobal: true }, withLockService)
  .build();

/**
 * Makes a LockService injectable, and `@DistributedLock` work.
 *
 * ```ts
 * @Module({ imports: [RedisLockModule.forRoot({ connection: 'redis://localhost:6379' })] })
 * export class AppModule {}
 * ```
 *
 * Import it once, in the root module; to use several Redis servers, import it once for each, all but one with a `name`.
 * On shutdown (`app.close()`, or a signal after `app.enableShutdownHooks()`) it grants locks as ever until the servers and
 * workers of the application have stopped, waits for what still holds or wants one, and closes its connections last.
 *
 * @throws LockConfigurationError when the application starts, naming the option that is wrong
 * @publicApi
 */
@Module({})
export class RedisLockModule extends ConfigurableModuleClass {
  /**
   * The module with these options. Exactly one of `connection`, `backend` and `quorum` is required.
   *
   * ```ts
   * RedisLockModule.forRoot({ connection: 'redis://localhost:6379', keyPrefix: 'shop:lock:' })
   * ```
   *
   * @throws LockConfigurationError when the application starts, naming the option that is wrong
   */
  static override forRoot(options: RedisLockOptions): DynamicModule {
    return super.forRoot(options ?? {});
  }

  /**
   * The module with options that are known only when the application starts, such as those of a ConfigService.
   *
   * ```ts
   * RedisLockModule.forRootAsync({
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ connection: config.getOrThrow<string>('REDIS_URL') }),
   * })
   * ```
   *
   * `name` and `isGlobal` are set beside the factory. All other options come from it. The factory runs once, so it
   * cannot depend on a request-scoped or durable provider.
   *
   * @throws LockConfigurationError if there is no factory, or for an option that the factory must return. When the
   *   application starts, also if the options depend on a request-scoped or durable provider
   */
  static override forRootAsync(options: RedisLockAsyncOptions): DynamicModule {
    const unknown = Object.keys(options).filter((option) => !ASYNC_OPTIONS.includes(option));
    if (unknown.length > 0) {
      throw new LockConfigurationError(
        `RedisLockModule.forRootAsync takes ${ASYNC_OPTIONS.join(', ')}; '${unknown[0]}' belongs in what the factory returns`,
      );
    }
    if (!options.useFactory && !options.useClass && !options.useExisting) {
      throw new LockConfigurationError(
        'RedisLockModule.forRootAsync needs one of useFactory, useClass and useExisting',
      );
    }
    return super.forRootAsync(options);
  }
}

const ASYNC_OPTIONS = [
  'imports',
  'inject',
  'provideInjectionTokensFrom',
  'useFactory',
  'useClass',
  'useExisting',
  'name',
  'isGlobal',
];

function withLockService(definition: DynamicModule, { name, isGlobal = true }: ModuleOptions): DynamicModule {
  if (name !== undefined && (typeof name !== 'string' || name === '')) {
    throw new LockConfigurationError(
      `The name of a RedisLockModule must be a string that is not empty, but it is ${String(name) || "''"}`,
    );
  }
  if (typeof isGlobal !== 'boolean') {
    throw new LockConfigurationError(`RedisLockModule: isGlobal is '${isGlobal}'; it must be true or false`);
  }
  const makeService = (options: RedisLockOptions) => create(options, name);
  return {
    ...definition,
    global: isGlobal,
    imports: [...(definition.imports ?? []), LockShutdownModule],
    providers: [...(definition.providers ?? []), ...provideLockService(name, makeService, REDIS_LOCK_OPTIONS)],
    exports: lockServiceTokens(name),
  };
}

async function create(options: RedisLockOptions, name: string | undefined): Promise<LockService> {
  for (const option of ['name', 'isGlobal'] as const) {
    if (options?.[option] !== undefined) {
      throw new LockConfigurationError(
        `'${option}' came from the factory of RedisLockModule.forRootAsync: give it beside the factory`,
      );
    }
  }
  const locks = createLockServiceWith(nodeRuntime, { logger: new Logger('RedisLock'), ...options, name });
  await connected(locks, options.connect === 'eager');
  return locks;
}

/** If the application does not start, its connections are closed. */
async function connected(locks: LockService, isEager: boolean): Promise<void> {
  try {
    await locks.started();
    if (isEager) await locks.connect();
  } catch (error) {
    await locks.close();
    throw error;
  }
}
