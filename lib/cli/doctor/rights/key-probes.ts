import { fairHeartbeats, fairQueue, permitLeases } from '../../../backends/redis/lock-keys.js';

/** Keys of a lock that nobody uses, each with the pattern of the recipe that permits it. */
export function keyProbes(keyPrefix: string, key: string): { readonly right: string; readonly key: string }[] {
  return [
    { right: `~${keyPrefix}*`, key },
    { right: `~{${keyPrefix}*`, key: permitLeases(key) },
    { right: `~redisson_lock_*${keyPrefix}*`, key: fairQueue(key) },
    { right: '~nestjs_redis_lock_*', key: fairHeartbeats(key) },
  ];
}
