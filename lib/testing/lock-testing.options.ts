import type { RedisLockOptions } from '../service/redis-lock-options.js';

/** Options of `LockTestingModule.forRoot`: those of RedisLockModule, without the place where locks are kept. @publicApi */
export type LockTestingOptions = Omit<RedisLockOptions, 'connection' | 'backend' | 'quorum'>;
