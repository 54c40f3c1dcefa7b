import type { BeforeApplicationShutdown, OnApplicationShutdown, Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { LockService } from '../service/lock-service.js';
import { LeaderExplorer } from './leader/leader.explorer.js';
import { LockServiceExplorer } from './lock-service.explorer.js';
import { getLockServiceToken, lockServiceClasses } from './redis-lock.constants.js';

/**
 * The providers of a module that has a lock service. The service without a name is provided by its class, and its token
 * is an alias, so that `overrideProvider(LockService)` reaches decorated methods too.
 */
export function provideLockService(
  name: string | undefined,
  makeService: (dependency: never) => LockService | Promise<LockService>,
  dependency: symbol,
): Provider[] {
  const token = getLockServiceToken(name);
  const service = name === undefined ? LockService : token;
  const aliases: Provider[] = otherTokens(name).map((provide) => ({ provide, useExisting: service }));
  return [
    {
      provide: service,
      useFactory: (modules: ModulesContainer, given: never) => replacementOf(token, modules) ?? makeService(given),
      inject: [ModulesContainer, dependency],
    },
    ...aliases,
    { provide: LockShutdown, useFactory: (locks: LockService) => new LockShutdown(locks), inject: [token] },
    {
      provide: LockServiceExplorer,
      useFactory: (locks: LockService, modules: ModulesContainer) => new LockServiceExplorer(locks, name, modules),
      inject: [token, ModulesContainer],
    },
    {
      provide: LeaderExplorer,
      useFactory: (locks: LockService, modules: ModulesContainer) => new LeaderExplorer(locks, name, modules),
      inject: [token, ModulesContainer],
    },
  ];
}

/** The value that a test has provided instead of the alias. No service is then created, because it would connect. */
function replacementOf(token: symbol, modules: ModulesContainer): LockService | undefined {
  for (const { providers } of modules.values()) {
    const provider = providers.has(LockShutdown) ? providers.get(token) : undefined;
    const isValue = provider?.isAlias !== true && provider?.metatype === null;
    if (isValue && provider?.instance) return provider.instance as LockService;
  }
  return undefined;
}

/** The tokens that a RedisLockModule of this name exports. */
export function lockServiceTokens(name: string | undefined) {
  return name === undefined ? [LockService, ...otherTokens(name)] : [getLockServiceToken(name)];
}

/** Further tokens of the service without a name, which are aliases of the class LockService. */
function otherTokens(name: string | undefined) {
  if (name !== undefined) return [];
  return [getLockServiceToken(), ...[...lockServiceClasses].filter((type) => type !== LockService)];
}

/**
 * Waits for running bodies before the application shuts down, then closes the connections that the service opened. A
 * mock that replaces the service in a test may lack `drain` and `close`.
 */
class LockShutdown implements BeforeApplicationShutdown, OnApplicationShutdown {
  constructor(private readonly locks: Partial<Pick<LockService, 'drain' | 'close'>> | undefined) {}

  async beforeApplicationShutdown(): Promise<void> {
    await this.locks?.drain?.();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.locks?.close?.();
  }
}
