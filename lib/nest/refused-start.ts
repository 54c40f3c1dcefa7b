import type { ModulesContainer } from '@nestjs/core';
import { LockConfigurationError } from '../engine/errors.js';

interface Startable {
  /** From now on, it keeps the process alive until it is closed. */
  keepAlive(): void;
  close(): Promise<void>;
}

/** The lock services of applications that are starting. */
const starting = new WeakMap<ModulesContainer, Set<Startable>>();
const refused = new WeakSet<ModulesContainer>();
const started = new WeakSet<ModulesContainer>();

/**
 * Runs a part of the start of an application. If it throws, NestJS calls none of the hooks that close connections. So
 * the lock services that the application has by then are closed first. If a provider that is not ours throws, nobody
 * closes them, so they keep the process alive only after the application has started.
 */
export async function orCloseServices<T>(modules: ModulesContainer, start: () => T | Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    const services = starting.get(modules);
    if (services !== undefined) {
      refused.add(modules);
      await Promise.all([...services].map((service) => service.close()));
    }
    throw error;
  }
}

/** Creates a lock service of an application. */
export function openService<Service extends Startable>(
  modules: ModulesContainer,
  create: () => Service | Promise<Service>,
): Promise<Service> {
  if (!starting.has(modules)) starting.set(modules, new Set());
  return orCloseServices(modules, async () => {
    if (started.has(modules)) throw loadedLazily();
    const service = await create();
    // NestJS creates the providers of several modules at the same time.
    if (refused.has(modules)) await service.close();
    else starting.get(modules)?.add(service);
    return service;
  });
}

/** NestJS calls no hooks in such a module, so nothing would close its lock service. */
export function loadedLazily(): LockConfigurationError {
  return new LockConfigurationError(
    'RedisLockModule is imported by a module that is loaded lazily. NestJS calls no shutdown hooks there, so nothing would release its locks and close its connections: import it into the root module',
  );
}

/** From now on, what fails is a module that is loaded lazily, and the application continues without it. */
export function hasStarted(modules: ModulesContainer): void {
  if (refused.has(modules)) return;
  started.add(modules);
  for (const service of starting.get(modules) ?? []) service.keepAlive();
  starting.get(modules)?.clear();
}
