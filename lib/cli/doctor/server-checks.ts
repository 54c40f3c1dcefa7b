import type { Redis } from 'ioredis';
import { type Finding, infoOf, note, ok, wrong } from './check.js';

const OLDEST = [6, 2];
/** From this share of its memory on, Redis is nearly full. */
const NEARLY_FULL = 0.9;

/** Redis 6.2 or later, or a server that says it speaks as one. */
export async function checkVersion(master: Redis): Promise<Finding> {
  const info = await infoOf(master, 'server');
  const version = info('redis_version');
  if (version === undefined)
    return note('the server does not tell its version', 'make sure that it is Redis 6.2 or later');
  const [major, minor] = version.split('.').map(Number);
  const own = ['valkey', 'dragonfly', 'keydb'].flatMap((name) => {
    const found = info(`${name}_version`);
    return found === undefined ? [] : `${name} ${found}, which speaks as `;
  });
  const text = `${own.join('')}Redis ${version}`;
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return ok(text);
  return wrong(text, `upgrade to Redis ${OLDEST.join('.')} or later`);
}

/** Locks are written: to a master. */
export async function checkRole(master: Redis): Promise<Finding> {
  const info = await infoOf(master, 'replication');
  if (info('role') === 'slave')
    return wrong('this server is a replica', `use its master, ${info('master_host')}:${info('master_port')}`);
  const replicas = Number(info('connected_slaves') ?? 0);
  return ok(`master with ${replicas === 1 ? '1 replica' : `${replicas} replicas`}`);
}

/** A lock that is evicted is granted twice; a Redis that is full refuses new ones. */
export async function checkMemory(master: Redis): Promise<Finding> {
  const info = await infoOf(master, 'memory');
  const policy = info('maxmemory_policy') ?? (await setting(master, 'maxmemory-policy'));
  const limit = Number(info('maxmemory') ?? (await setting(master, 'maxmemory')) ?? 0);
  const remedy = "set maxmemory-policy to 'noeviction', or use a separate Redis for locks";
  if (policy === undefined) return note('the server does not tell its maxmemory-policy', `make sure: ${remedy}`);
  if (policy !== 'noeviction') {
    return limit > 0
      ? wrong(`maxmemory-policy is '${policy}': locks that are held may be evicted, and granted twice`, remedy)
      : note(`maxmemory-policy is '${policy}', which does no harm until maxmemory is set`, remedy);
  }
  const share = limit > 0 ? Number(info('used_memory') ?? 0) / limit : 0;
  if (share < NEARLY_FULL) return ok("maxmemory-policy is 'noeviction'");
  return note(
    `${Math.round(share * 100)} % of maxmemory is used; when it is full, new locks are refused`,
    'raise maxmemory, or find what fills it',
  );
}

/** By CONFIG, which few users may ask. */
async function setting(master: Redis, name: string): Promise<string | undefined> {
  const reply = await master.config('GET', name).catch(() => []);
  return (reply as string[])[1];
}
