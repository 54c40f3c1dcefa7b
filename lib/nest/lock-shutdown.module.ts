import { type BeforeApplicationShutdown, Module, type OnApplicationShutdown } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { LockService } from '../service/lock-service.js';
import { loadedLazily } from './refused-start.js';

/** What closes with an application. A mock that replaces a lock service in a test may lack each of these methods. */
type Closing = Partial<Pick<LockService, 'beginShutdown' | 'settle' | 'drain' | 'close'>>;

/**
 * Ends the lock services of an application. Its servers have then answered their requests. Its first
 * `onApplicationShutdown` waits for what still holds or waits, because the hooks of other modules close what that needs,
 * such as databases. The last one comes after these hooks, which also stop workers: what those still run needs its locks.
 */
export class LockShutdown implements OnApplicationShutdown {
  private readonly services: Closing[] = [];
  private readonly afterwards: (() => void)[] = [];

  add(service: Closing | undefined): void {
    if (service !== undefined) this.services.push(service);
  }

  /** Calls `callback` when the services are closed. */
  onClosed(callback: () => void): void {
    this.afterwards.push(callback);
  }

  begin(): void {
    for (const service of this.services) service.beginShutdown?.();
  }

  async settle(): Promise<void> {
    await Promise.all(this.services.map((service) => service.settle?.()));
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.services.map((service) => service.drain?.()));
    await Promise.all(this.services.map((service) => service.close?.()));
    for (const callback of this.afterwards.splice(0)) callback();
  }
}

class FirstHooks implements BeforeApplicationShutdown, OnApplicationShutdown {
  constructor(private readonly shutdown: LockShutdown) {}

  beforeApplicationShutdown(): void {
    this.shutdown.begin();
  }

  onApplicationShutdown(): Promise<void> {
    return this.shutdown.settle();
  }
}

/** One for each application, whichever copies of this library its modules come from. */
const SHUTDOWNS = Symbol.for('nestjs-redis-lock.shutdowns');
const shared = globalThis as { [SHUTDOWNS]?: WeakMap<ModulesContainer, LockShutdown> };
shared[SHUTDOWNS] ??= new WeakMap();
const shutdowns = shared[SHUTDOWNS];

function shutdownOf(modules: ModulesContainer): LockShutdown {
  const shutdown = shutdowns.get(modules) ?? new LockShutdown();
  shutdowns.set(modules, shutdown);
  placeHooks(modules);
  return shutdown;
}

/**
 * Makes the shutdown hooks of LockShutdownModule the first ones, and those of LastHookModule the last ones. NestJS calls
 * hooks in the order of the distances of modules from the root, and caches that order when all providers exist. NestJS 10
 * begins with the greatest one. Later versions give global modules, such as their own first module, the greatest
 * distance, and begin a shutdown with the smallest.
 *
 * @throws LockConfigurationError in a module that is loaded lazily, which has no distance, and whose hooks are not called
 */
function placeHooks(modules: ModulesContainer): void {
  const [core] = modules.values();
  const [first, last] = core.distance > 0 ? [-1, Number.POSITIVE_INFINITY] : [Number.POSITIVE_INFINITY, -1];
  for (const module of modules.values()) {
    if (module.metatype !== LockShutdownModule && module.metatype !== LastHookModule) continue;
    if (module.distance === 0) throw loadedLazily();
    module.distance = module.metatype === LastHookModule ? last : first;
  }
}

/** A module of its own, because NestJS calls the hooks of one module after those of another. */
@Module({
  providers: [{ provide: LockShutdown, useFactory: shutdownOf, inject: [ModulesContainer] }],
  exports: [LockShutdown],
})
class LastHookModule {}

@Module({
  imports: [LastHookModule],
  providers: [
    { provide: FirstHooks, useFactory: (shutdown: LockShutdown) => new FirstHooks(shutdown), inject: [LockShutdown] },
  ],
  exports: [LastHookModule],
})
export class LockShutdownModule {}
