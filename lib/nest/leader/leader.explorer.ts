import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import type { LockService } from '../../service/lock-service.js';
import { asksFor, lateInstances } from '../lock-service-property.js';
import { hasOneInstance, type NestProvider, providersOf } from '../nest-providers.js';
import { getLockServiceToken } from '../redis-lock.constants.js';
import { orCloseServices } from '../refused-start.js';
import { leaderMethodsOf, refuseLeaders } from './leader-methods.js';

/**
 * Finds methods with `@Leader` when the application has started or a module was loaded lazily, and starts their
 * elections. The lock service ends these first on shutdown, in `beforeApplicationShutdown`.
 */
export class LeaderExplorer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly token: symbol;

  /** @param service in a test, a mock that may lack `leadBy`; nobody leads then */
  constructor(
    private readonly service: Partial<Pick<LockService, 'leadBy'>> | undefined,
    private readonly name: string | undefined,
    private readonly modules: ModulesContainer,
  ) {
    this.token = getLockServiceToken(name);
  }

  onApplicationBootstrap(): Promise<void> {
    return orCloseServices(this.modules, () => this.startAll());
  }

  private startAll(): void {
    const instances = new Set<object>();
    for (const provider of providersOf(this.modules.values())) this.explore(provider, instances);
    for (const instance of instances) this.start(instance);
    // NestJS calls no hook for the modules that it loads lazily.
    if (this.service !== undefined) lateInstances.set(this.service, (instance) => this.startLate(instance));
  }

  beforeApplicationShutdown(): void {
    if (this.service !== undefined) lateInstances.delete(this.service);
  }

  private start(instance: object): void {
    for (const { name, method, where } of leaderMethodsOf(Object.getPrototypeOf(instance), this.name)) {
      const onElected = async (lease: unknown) =>
        (instance as Record<string, (lease: unknown) => unknown>)[method](lease);
      this.service?.leadBy?.(name, { onElected, group: name }, where);
    }
  }

  /** @throws LockConfigurationError, with which loading the module rejects */
  private startLate(instance: object): void {
    if (leaderMethodsOf(Object.getPrototypeOf(instance), this.name).length === 0) return;
    for (const provider of providersOf(this.modules.values()))
      if (provider.metatype === instance.constructor) this.explore(provider, new Set());
    // The rest of its module is created meanwhile.
    setImmediate(() => {
      if (this.service !== undefined && lateInstances.has(this.service)) this.start(instance);
    });
  }

  private explore(provider: NestProvider, instances: Set<object>): void {
    if (hasOneInstance(provider)) {
      const { instance } = provider as { instance: unknown };
      if (asksFor(instance, this.token) && (instance[this.token] as unknown) === this.service) instances.add(instance);
      return;
    }
    refuseLeaders((provider.metatype as { prototype?: object } | null)?.prototype, this.name);
  }
}
