import type { OnApplicationBootstrap, OnModuleInit } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { LockConfigurationError } from '../engine/errors.js';
import type { LockService } from '../service/lock-service.js';
import { refuseLeaders } from './leader/leader-methods.js';
import { asksFor, attachLockService, type Lockable } from './lock-service-property.js';
import { hasOneInstance, type NestModule, type NestProvider, providersOf } from './nest-providers.js';
import { getLockServiceToken } from './redis-lock.constants.js';
import { hasStarted, orCloseServices } from './refused-start.js';

/**
 * NestJS does not inject properties into instances from `useFactory` and `useValue`. This class finds such instances
 * with decorated methods, also in an array, Set or Map, and gives them their lock service. A global module does so before
 * the first `onModuleInit` of other modules.
 */
export class LockServiceExplorer implements OnModuleInit, OnApplicationBootstrap {
  private readonly token: symbol;
  private readonly attached: Lockable[] = [];

  constructor(
    private readonly service: LockService,
    private readonly name: string | undefined,
    private readonly modules: ModulesContainer,
  ) {
    this.token = getLockServiceToken(name);
  }

  onModuleInit(): Promise<void> {
    return orCloseServices(this.modules, () => this.exploreAll());
  }

  onApplicationBootstrap(): void {
    setImmediate(() => hasStarted(this.modules)); // other modules have hooks that may refuse the start
  }

  private exploreAll(): void {
    this.refuseDuplicates();
    const served = [...this.modules.values()].filter((module) => findService(module, this.token) === this.service);
    for (const provider of providersOf(served)) this.explore(provider);
  }

  /** Allows an object that outlives the application (`useValue`) to be used in another application. */
  detach(): void {
    for (const instance of this.attached.splice(0)) instance[this.token] = undefined;
  }

  private explore(provider: NestProvider): void {
    if (hasOneInstance(provider)) {
      this.attach(provider.instance);
      for (const member of membersOf(provider.instance)) this.attachMember(member);
      return;
    }
    if (provider.isTransient)
      for (const made of provider.getStaticTransientInstances()) this.attachOneOfMany(made?.instance);
    if (provider.inject && typeof provider.metatype === 'function') this.attachToProducts(provider);
  }

  /** Factories create request-scoped and transient instances later. Each gets its service when it is created. */
  private attachToProducts(provider: NestProvider): void {
    const factory = provider.metatype as (...dependencies: unknown[]) => unknown;
    provider.metatype = async (...dependencies: unknown[]) => {
      const product = await factory(...dependencies);
      for (const made of [product, ...membersOf(product)]) this.attachLate(made);
      return product;
    };
  }

  private attachLate(instance: unknown): void {
    if (!asksFor(instance, this.token) || instance[this.token] !== undefined) return;
    refuseLeaders(Object.getPrototypeOf(instance), this.name);
    attachLockService(instance, this.service, this.name);
  }

  private attachOneOfMany(instance: unknown): void {
    if (asksFor(instance, this.token)) refuseLeaders(Object.getPrototypeOf(instance), this.name);
    this.attach(instance);
  }

  private attach(instance: unknown): void {
    if (!asksFor(instance, this.token) || instance[this.token] === this.service) return;
    attachLockService(instance, this.service, this.name);
    this.attached.push(instance);
  }

  /** A member that is a provider too has the service of its own module. */
  private attachMember(member: unknown): void {
    if (!asksFor(member, this.token) || member[this.token] !== undefined || this.isProvider(member)) return;
    this.attachOneOfMany(member);
  }

  private isProvider(instance: unknown): boolean {
    return [...this.modules.values()].some(({ providers }) =>
      [...providers.values()].some((provider) => provider.instance === instance),
    );
  }

  /**
   * With two global modules of the same name, the order of imports would decide which lock service an instance gets.
   */
  private refuseDuplicates(): void {
    const global = [...this.modules.values()].filter((module) => module.isGlobal && module.providers.has(this.token));
    if (global.length <= 1) return;
    const which = this.name === undefined ? 'without a name' : `with the name '${this.name}'`;
    throw new LockConfigurationError(
      `RedisLockModule is imported ${global.length} times ${which}: give each its own name, or isGlobal: false`,
    );
  }
}

function membersOf(product: unknown): readonly unknown[] {
  try {
    if (Array.isArray(product) || product instanceof Set) return [...product];
    return product instanceof Map ? [...product.values()] : [];
  } catch {
    return []; // a proxy that throws outside of a request
  }
}

/**
 * The service that would be injected into a provider of this module: the module's own, or the first one that its
 * imports export.
 */
function findService(module: NestModule, token: symbol): unknown {
  return module.providers.get(token)?.instance ?? findExported(module.imports, token, new Set());
}

function findExported(modules: Iterable<NestModule>, token: symbol, seen: Set<NestModule>): unknown {
  for (const module of modules) {
    if (seen.has(module)) continue;
    seen.add(module);
    const exported = module.exports.has(token);
    const passedOn = [...module.imports].filter((inner) => exported || module.exports.has(inner.metatype));
    const found = (exported && module.providers.get(token)?.instance) || findExported(passedOn, token, seen);
    if (found) return found;
  }
  return undefined;
}
