import { bare } from './bare.js';
import type { Contestant } from './contestant.js';
import { floor } from './floor.js';
import { ioredisLock } from './ioredis-lock.js';
import { redisKitLock } from './redis-kit-lock.js';
import { redisSemaphore } from './redis-semaphore.js';
import { redisson } from './redisson.js';
import { redlock } from './redlock.js';
import { redlockUniversal } from './redlock-universal.js';
import { scriptsByHand } from './scripts-by-hand.js';
import { simpleRedisMutex } from './simple-redis-mutex.js';
import { inBackground, thisLibrary } from './this-library.js';

export const PEERS: readonly Contestant[] = [
  redlock,
  redisSemaphore,
  redlockUniversal,
  ioredisLock,
  redisKitLock,
  simpleRedisMutex,
  redisson,
];

export const CONTESTANTS: readonly Contestant[] = [thisLibrary, floor, ...PEERS];

export function contestantOf(name: string): Contestant {
  const contestant = [...CONTESTANTS, inBackground, scriptsByHand, bare].find((each) => each.name === name);
  if (contestant === undefined) throw new Error(`there is no contestant '${name}'`);
  return contestant;
}
