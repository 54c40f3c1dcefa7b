import { messageOf, OTHER_KEYS_REMEDY, otherKeysIn } from '../../backends/redis/diagnostics.js';
import type { Server } from '../redis/server.js';
import { type Finding, infoOf, note, ok, wrong } from './check.js';

const OLDEST = [6, 2];
/** The versions that the tests run on; docs/managed-redis.md says which tests. */
const TESTED = { Redis: ['6.2', '7.0', '8.0'], Valkey: ['8.1', '9.1'] };
/** Redis is nearly full when this share of its memory is in use. */
const NEARLY_FULL = 0.9;

/** Redis 6.2 or later, or a server that reports a compatible version. */
export async function checkVersion(master: Server): Promise<Finding> {
  const info = await infoOf(master, 'server');
  const version = info('redis_version');
  if (version === undefined)
    return note('the server does not report its version', 'make sure that it is Redis 6.2 or later');
  const [major, minor] = version.split('.').map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))
    return wrong(`Redis ${version}`, `upgrade to Redis ${OLDEST.join('.')} or later`);
  const other = ['Dragonfly', 'KeyDB'].find((name) => info(`${name.toLowerCase()}_version`) !== undefined);
  if (other !== undefined)
    return ok(
      `${other} ${info(`${other.toLowerCase()}_version`)}, compatible with Redis ${version}, not among the tested servers`,
    );
  const valkey = info('valkey_version');
  return ok(valkey === undefined ? tested('Redis', version) : tested('Valkey', valkey));
}

function tested(kind: keyof typeof TESTED, version: string): string {
  if (TESTED[kind].some((minor) => version.startsWith(`${minor}.`))) return `${kind} ${version}, a tested version`;
  return `${kind} ${version}, not among the tested versions: ${TESTED[kind].join(', ')}`;
}

/** Writes and removes a key. A Redis that refuses to grant locks refuses such a script, too. */
const WRITE = "redis.call('SET', KEYS[1], '', 'PX', 1000) return redis.call('DEL', KEYS[1])";

/** What to do when a master refuses to write. Other checks report other errors. */
const WRITE_REMEDIES: readonly (readonly [error: RegExp, remedy: string])[] = [
  [/\bMISCONF\b/, 'Redis cannot save its data: see its log, and check the space and the rights on its disk'],
  [/\bNOREPLICAS\b/, 'bring its replicas back (INFO replication), or lower min-replicas-to-write'],
  [/\bREADONLY\b/, 'a failover may be under way: run doctor again'],
];

/**
 * Only a master accepts writes, and not always.
 *
 * @param key a key that nobody uses, in a slot of this master
 */
export async function checkRole(master: Server, key: string): Promise<Finding> {
  const info = await infoOf(master, 'replication');
  if (info('role') === 'slave')
    return wrong('this server is a replica', `use its master, ${info('master_host')}:${info('master_port')}`);
  const refusal = await failureOf(master.ask('eval', WRITE, '1', key));
  const [, remedy] = WRITE_REMEDIES.find(([error]) => refusal !== undefined && error.test(refusal)) ?? [];
  if (remedy !== undefined) return wrong(`this master refuses to write, and so refuses all locks: ${refusal}`, remedy);
  const replicas = Number(info('connected_slaves') ?? 0);
  return ok(`master with ${replicas === 1 ? '1 replica' : `${replicas} replicas`}`);
}

/**
 * An evicted lock can be granted twice, and a full Redis refuses new locks.
 *
 * @param key a key that nobody uses, in a slot of this master
 */
export async function checkMemory(master: Server, key: string): Promise<Finding> {
  const refusal = await failureOf(master.ask('eval', WRITE, '1', key));
  if (refusal !== undefined && /\bOOM\b/.test(refusal))
    return wrong(
      `Redis has no memory left, and refuses new locks: ${refusal}`,
      'raise maxmemory, or find out which keys take the memory. Held locks are renewed and released all the same',
    );
  const info = await infoOf(master, 'memory');
  const policy = info('maxmemory_policy') ?? (await setting(master, 'maxmemory-policy'));
  const limit = Number(info('maxmemory') ?? (await setting(master, 'maxmemory')) ?? 0);
  const remedy = "set maxmemory-policy to 'noeviction', or use a separate Redis for locks";
  if (policy === undefined) return note('the server does not report its maxmemory-policy', `check it: ${remedy}`);
  if (policy !== 'noeviction') {
    return limit > 0
      ? wrong(`maxmemory-policy is '${policy}': locks that are held may be evicted, and granted twice`, remedy)
      : note(`maxmemory-policy is '${policy}', which does no harm until maxmemory is set`, remedy);
  }
  const share = limit > 0 ? Number(info('used_memory') ?? 0) / limit : 0;
  if (share < NEARLY_FULL) return ok("maxmemory-policy is 'noeviction'");
  return note(
    `${Math.round(share * 100)} % of maxmemory is used; when it is full, new locks are refused`,
    'raise maxmemory, or find out which keys take the memory',
  );
}

/** Whoever flushes a database for other keys also removes the locks in it. */
export async function checkOtherKeys(master: Server, keyPrefix: string, database: number): Promise<Finding> {
  const info = await master.ask('info', 'keyspace').then(String, () => '');
  const found = await otherKeysIn(info, database, keyPrefix, (name, args) => master.ask(name, ...args));
  return found === undefined ? ok('few keys of others, as far as it may look') : note(found, OTHER_KEYS_REMEDY);
}

/** Reads a setting with CONFIG, which most users are not allowed to do. */
async function setting(master: Server, name: string): Promise<string | undefined> {
  const reply = await master.ask('config', 'get', name).catch(() => []);
  return Array.isArray(reply) ? String(reply[1]) : undefined;
}

/** Like the scripts of the locks, it builds one key from another. */
const OTHER_KEY = "return redis.call('EXISTS', KEYS[1] .. ':other')";
const WITHOUT_KEY = "return 'fine'";

/** Whether Lua scripts run. @param key with a hash tag, so that the other key is in the same slot */
export async function checkScripts(master: Server, key: string): Promise<Finding> {
  const otherKey = await failureOf(master.ask('eval', OTHER_KEY, '1', key));
  if (otherKey !== undefined) {
    if (/NOPERM/.test(otherKey)) return note(`not known: ${otherKey}`, "see the 'rights' check");
    if (/CLUSTERDOWN/.test(otherKey)) return note(`not known: ${otherKey}`, "see the 'cluster' check");
    return wrong(
      `a script was refused: ${otherKey}`,
      'allow scripts, also with undeclared keys; on Dragonfly: --default_lua_flags=allow-undeclared-keys',
    );
  }
  const withoutKey = await failureOf(master.ask('eval', WITHOUT_KEY, '0'));
  if (withoutKey === undefined) return ok('scripts run, with and without keys');
  return note(
    `scripts run, but not without a key: ${withoutKey}`,
    'do nothing, because all scripts of locks have a key. Other software may need scripts without keys',
  );
}

/** If the key belongs to another node, the script was accepted even though it was not run. */
async function failureOf(call: Promise<unknown>): Promise<string | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    const message = messageOf(error);
    return /^MOVED/.test(message) ? undefined : message;
  }
}

/** Differences below this do not matter, in milliseconds. */
const TOLERANCE = 1_000;

/** Compares the clock of a server with that of this host. */
export async function checkClock(master: Server): Promise<Finding> {
  const before = Date.now();
  const [seconds, microseconds] = ((await master.ask('time')) as string[]).map(Number);
  const after = Date.now();
  const time = seconds * 1_000 + microseconds / 1_000;
  // The server read its clock at some moment between the two.
  const difference = time < before ? time - before : Math.max(0, time - after);
  if (Math.abs(difference) <= TOLERANCE) return ok('the clocks of Redis and of this host agree');
  const side = difference > 0 ? 'ahead of' : 'behind';
  return note(
    `the clock of Redis is ${(Math.abs(difference) / 1_000).toFixed(1)} s ${side} the clock of this host`,
    'synchronize the clocks (NTP). Leases do not depend on it, but cron jobs start at different moments, so a holdAtLeast must be longer than the difference',
  );
}
