import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { type Finding, infoOf, ok, wrong } from '../check.js';
import { missingChannelRights } from './channel-probes.js';
import { clusterProbes, commandProbes, firstProbe, type Probe } from './command-probes.js';
import { denial } from './denial.js';
import { keyProbes } from './key-probes.js';

/** What is examined with which user. */
export interface RightsSubject {
  readonly keyPrefix: string;
  readonly isCluster: boolean;
  readonly user: string;
}

/** Since this version there is sharded pub/sub. */
const SHARDED_SINCE = 7;

/**
 * Tries every right of the recipe in docs/permissions.md. Redis checks rights before anything else, so the commands are given what they can
 * do nothing with. Asking for the rights (ACL DRYRUN) needs more rights than locks do.
 */
export async function checkRights(master: Redis, { keyPrefix, isCluster, user }: RightsSubject): Promise<Finding> {
  const key = `${keyPrefix}doctor-${randomUUID()}`;
  const isSharded = isCluster && (await majorVersion(master)) >= SHARDED_SINCE;
  const first = await missing(master, [firstProbe(key)]);
  // Where the key cannot be made, the commands for other types would make one.
  const probes = commandProbes(key).filter(({ right }) => first.length === 0 || !MAKES_KEYS.includes(right));
  const others = isCluster ? clusterProbes(key).filter(({ right }) => isSharded || right !== 'spublish') : [];
  const found = [
    ...first,
    ...(await missing(master, [...probes, ...others])),
    ...(await missingKeys(master, keyPrefix, key)),
    ...(await missingChannelRights(master, key, isSharded)),
  ];
  const rights = [...new Set(found)];
  const count = probes.length + others.length;
  if (rights.length === 0) return ok(`user '${user}' has every right that locks need (${count} commands tried)`);
  return wrong(`user '${user}' lacks ${rights.join(' ')}`, `ACL SETUSER ${user} ${rights.join(' ')}`);
}

const MAKES_KEYS = ['set', 'getset', 'hset', 'hsetnx', 'rpush', 'zadd'];

async function missing(master: Redis, probes: readonly Probe[]): Promise<string[]> {
  const replies = await master.pipeline(probes.map(({ command }) => [...command])).exec();
  return probes.flatMap(({ right }, n) => {
    const what = denial(replies?.[n][0]);
    if (what === 'channel') return '&*';
    return what === 'command' ? `+${right}` : [];
  });
}

/** HDEL of a key that is not there: it reads and writes, as the locks do. */
async function missingKeys(master: Redis, keyPrefix: string, ofLock: string): Promise<string[]> {
  const probes = keyProbes(keyPrefix, ofLock);
  const replies = await master.pipeline(probes.map(({ key }) => ['hdel', key, 'none'])).exec();
  return probes.flatMap(({ right }, n) => (denial(replies?.[n][0]) === 'key' ? right : []));
}

async function majorVersion(master: Redis): Promise<number> {
  const info = await infoOf(master, 'server').catch(() => undefined);
  return Number(info?.('redis_version')?.split('.')[0] ?? 0);
}
