import type { ModulesContainer } from '@nestjs/core';

interface Closable {
  close(): Promise<void>;
}

/** The lock services of applications that are starting. Undefined once an application has started. */
const starting = new WeakMap<ModulesContainer, Set<Closable>>();
const refused = new WeakSet<ModulesContainer>();

/**
 * Runs a part of the start of an application. If it throws, NestJS calls none of the hooks that close connections, and
 * these would keep the process alive. So the lock services that the application has by then are closed first.
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
export function openService<Service extends Closable>(
  modules: ModulesContainer,
  create: () => Service | Promise<Service>,
): Promise<Service> {
  if (!starting.has(modules)) starting.set(modules, new Set());
  return orCloseServices(modules, async () => {
    const service = await create();
    // NestJS creates the providers of several modules at the same time.
    if (refused.has(modules)) await service.close();
    else starting.get(modules)?.add(service);
    return service;
  });
}

/** From now on, what fails is a module that is loaded lazily, and the application continues without it. */
export function hasStarted(modules: ModulesContainer): void {
  starting.get(modules)?.clear();
}
