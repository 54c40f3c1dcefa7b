import { MetadataScanner } from '@nestjs/core';
import { LockConfigurationError } from '../../engine/errors.js';
import { type LeaderMetadata, leaderMetadata } from './leader.decorator.js';

interface LeaderMethodOf extends LeaderMetadata {
  readonly method: string;
}

const scanner = new MetadataScanner();

/**
 * The methods of a class with `@Leader`.
 *
 * @param service the name of the lock service that their elections use
 */
export function leaderMethodsOf(
  prototype: object | null | undefined,
  service: string | undefined,
): readonly LeaderMethodOf[] {
  if (prototype === undefined || prototype === null) return [];
  return scanner.getAllMethodNames(prototype).flatMap((method) => {
    const metadata = leaderMetadata((prototype as Record<string, unknown>)[method]);
    return metadata === undefined || metadata.service !== service ? [] : [{ ...metadata, method }];
  });
}

/**
 * Each instance of such a class would stand for election, for ever.
 *
 * @throws LockConfigurationError when a class with many instances has a method with `@Leader`
 */
export function refuseLeaders(prototype: object | null | undefined, service: string | undefined): void {
  const [leader] = leaderMethodsOf(prototype, service);
  if (leader === undefined) return;
  throw new LockConfigurationError(
    `${leader.where}: @Leader needs a provider that exists once, but this one is request-scoped, transient, or in an array, Set or Map. Move the method to a singleton`,
  );
}
