import { Inject } from '@nestjs/common';
import { getLockServiceToken } from './redis-lock.constants.js';

/**
 * Injects the LockService of the RedisLockModule with this `name`. Without an argument, it injects the service of the
 * module without a name, which can also be injected by its class.
 *
 * ```ts
 * constructor(@InjectLockService('billing') private readonly locks: LockService) {}
 * ```
 *
 * @publicApi
 */
export const InjectLockService = (name?: string): PropertyDecorator & ParameterDecorator =>
  Inject(getLockServiceToken(name));
