import type { ConfigurableModuleAsyncOptions } from '@nestjs/common';
import type { RedisLockOptions } from '../service/redis-lock-options.js';

/** The options that must be known before a factory runs. */
type ModuleOptionName = 'name' | 'isGlobal';

/** Creates the options of a RedisLockModule, for `useClass` and `useExisting`. @publicApi */
export interface RedisLockOptionsFactory {
  createRedisLockOptions(): RedisLockFactoryOptions | Promise<RedisLockFactoryOptions>;
}

/** What a factory returns: all options except `name` and `isGlobal`, which are given beside the factory. @publicApi */
export type RedisLockFactoryOptions = Omit<RedisLockOptions, ModuleOptionName>;

/**
 * Options of `RedisLockModule.forRootAsync`: one of `useFactory` (with `inject`), `useClass` and `useExisting`.
 * @publicApi
 */
export type RedisLockAsyncOptions = Pick<RedisLockOptions, ModuleOptionName> &
  ConfigurableModuleAsyncOptions<RedisLockFactoryOptions, 'createRedisLockOptions'>;
