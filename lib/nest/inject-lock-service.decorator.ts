import { Inject } from '@nestjs/common';
import { getLockServiceToken } from './redis-lock.constants.js';

/**
 * Injects the LockService of the RedisLockModule with that `name`; without a name, the default one (which can also be injected by
 * its class).
 *
 * ```ts
 * constructor(@InjectLockService('billing') private readonly locks: LockService) {}
 * ```
 *
 * @publicApi
 */
export const InjectLockService = (name?: string): PropertyDecorator & ParameterDecorator =>
  Inject(getLockServiceToken(name));
