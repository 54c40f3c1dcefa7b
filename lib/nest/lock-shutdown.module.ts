import { type BeforeApplicationShutdown, Module, type OnApplicationShutdown } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { LockService } from '../service/lock-service.js';
import { loadedLazily } from './refused-start.js';

/** What closes with an application. A mock that replaces a lock service in a test may lack each of these methods. */
type Closing = Partial<Pick<LockService, 'beginShutdown' | 'drain' | 'close'>>;

/**
 * Ends the lock services of an application with its last hook. Only then have its servers answered their requests, and
 * its workers stopped: what they still run needs its locks.
 */
export class LockShutdown implements BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly services: Closing[] = [];
  private readonly afterwards: (() => void)[] = [];

  add(service: Closing | undefined): void {
    if (service !== undefined) this.services.push(service);
  }

  /** Calls `callback` when the services are closed. */
  onClosed(callback: () => void): void {
    this.afterwards.push(callback);
  }

  beforeApplicationShutdown(): void {
    for (const service of this.services) service.beginShutdown?.();
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.services.map((service) => service.drain?.()));
    await Promise.all(this.services.map((service) => service.close?.()));
    for (const callback of this.afterwards.splice(0)) callback();
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
  callLast(modules);
  return shutdown;
}

/**
 * Makes the shutdown hooks of this module the last ones. NestJS calls hooks in the order of the distances of modules
 * from the root, and caches that order when all providers exist. NestJS 10 begins with the greatest one. Later versions
 * give global modules, such as their own first module, the greatest distance, and begin a shutdown with the smallest.
 *
 * @throws LockConfigurationError in a module that is loaded lazily, which has no distance, and whose hooks are not called
 */
function callLast(modules: ModulesContainer): void {
  const [core] = modules.values();
  for (const module of modules.values()) {
    if (module.metatype !== LockShutdownModule) continue;
    if (module.distance === 0) throw loadedLazily();
    module.distance = core.distance > 0 ? Number.POSITIVE_INFINITY : -1;
  }
}

/** A module of its own, because NestJS calls the hooks of one module after those of another. */
@Module({
  providers: [{ provide: LockShutdown, useFactory: shutdownOf, inject: [ModulesContainer] }],
  exports: [LockShutdown],
})
export class LockShutdownModule {}
