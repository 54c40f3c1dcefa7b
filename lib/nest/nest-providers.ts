import type { ModulesContainer } from '@nestjs/core';

export type NestModule = ModulesContainer extends Map<string, infer M> ? M : never;
/** NestJS's record of a provider, controller, guard or interceptor. */
export type NestProvider = NestModule['providers'] extends Map<unknown, infer P> ? P : never;

/** All that NestJS creates for these modules, without other names for the same. */
export function* providersOf(modules: Iterable<NestModule>): Iterable<NestProvider> {
  for (const { providers, controllers, injectables } of modules)
    for (const provider of [...providers.values(), ...controllers.values(), ...injectables.values()] as NestProvider[])
      if (!provider.isAlias) yield provider;
}

/** Whether there is one instance for the whole application. */
export function hasOneInstance(provider: NestProvider): boolean {
  return provider.isDependencyTreeStatic() && !provider.isTransient;
}
