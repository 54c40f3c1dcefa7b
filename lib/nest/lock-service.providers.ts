import { type OnModuleInit, type Provider, Scope } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { LockConfigurationError } from '../engine/errors.js';
import { LockService } from '../service/lock-service.js';
import { LeaderExplorer } from './leader/leader.explorer.js';
import { LockServiceExplorer } from './lock-service.explorer.js';
import { LockShutdown } from './lock-shutdown.module.js';
import type { NestProvider } from './nest-providers.js';
import { getLockServiceToken, lockServiceClasses } from './redis-lock.constants.js';
import { openService, orCloseServices } from './refused-start.js';

const LOCKS_TO_CLOSE = Symbol('nestjs-redis-lock.locks-to-close');

/**
 * The providers of a module that has a lock service, and imports LockShutdownModule. The service without a name is provided by its class, and its token
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
      useFactory: (modules: ModulesContainer, given: never) =>
        replacementOf(token, modules) ?? openService(modules, () => makeService(given)),
      // LockShutdown refuses a module that is loaded lazily, so no service is created then.
      inject: [ModulesContainer, dependency, LockShutdown],
    },
    ...aliases,
    {
      provide: RequestScopeCheck,
      useFactory: (modules: ModulesContainer) => new RequestScopeCheck(service, modules),
      inject: [ModulesContainer],
    },
    {
      provide: LOCKS_TO_CLOSE,
      useFactory: (shutdown: LockShutdown, locks: LockService, explorer: LockServiceExplorer) => {
        shutdown.add(locks);
        shutdown.onClosed(() => explorer.detach());
      },
      inject: [LockShutdown, token, LockServiceExplorer],
    },
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
    const provider = providers.has(LockServiceExplorer) ? providers.get(token) : undefined;
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
 * Refuses a service that depends on a request. NestJS would create one for each request, with its own connections, and
 * would call none of its hooks, so that nothing would close them. This class does not depend on the service, because
 * its own hook would not be called either.
 */
class RequestScopeCheck implements OnModuleInit {
  constructor(
    private readonly service: symbol | typeof LockService,
    private readonly modules: ModulesContainer,
  ) {}

  onModuleInit(): Promise<void> {
    return orCloseServices(this.modules, () => this.check());
  }

  private check(): void {
    for (const { providers } of this.modules.values()) {
      const provider = providers.has(RequestScopeCheck) ? providers.get(this.service) : undefined;
      const cause = provider && requestScopedIn(provider, new Set());
      if (cause === undefined) continue;
      throw new LockConfigurationError(
        `RedisLockModule.forRootAsync: the options depend on ${cause}, which NestJS creates for each request; every request would get its own lock service and connections, and nothing would close them; inject only providers that exist once, such as ConfigService, and put what differs between requests, such as the tenant, into the names of the locks`,
      );
    }
  }
}

/** The name of the provider that makes this one depend on a request, if there is one. */
function requestScopedIn(provider: NestProvider, seen: Set<NestProvider>): string | undefined {
  if (provider.isDependencyTreeStatic() || seen.has(provider)) return undefined;
  if (provider.scope === Scope.REQUEST) return String(provider.name);
  seen.add(provider);
  const properties = (provider.getPropertiesMetadata() ?? []).map(({ wrapper }) => wrapper);
  for (const dependency of [...(provider.getCtorMetadata() ?? []), ...properties]) {
    const cause = requestScopedIn(dependency, seen);
    if (cause !== undefined) return cause;
  }
  return undefined;
}
