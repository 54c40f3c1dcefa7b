import { randomUUID } from 'node:crypto';
import {
  clientChannel,
  errorCode,
  fairChannelPrefix,
  fairHeartbeats,
  fairQueue,
  lineChannel,
  linePlaces,
  lockChannel,
  messageOf,
  permitLeases,
} from '../../backends/redis/diagnostics.js';
import type { Server } from '../redis/server.js';
import { type Finding, infoOf, ok, wrong } from './check.js';

/** The server and the user to check. */
export interface RightsSubject {
  readonly keyPrefix: string;
  readonly isCluster: boolean;
  readonly user: string;
}

/** The first version with sharded pub/sub. */
const SHARDED_SINCE = 7;

/**
 * Tries every right that the ACL SETUSER command in docs/permissions.md grants. Redis checks rights first, so the
 * commands get arguments that change nothing. ACL DRYRUN would need more rights than locks do.
 */
export async function checkRights(master: Server, { keyPrefix, isCluster, user }: RightsSubject): Promise<Finding> {
  const key = `${keyPrefix}doctor-${randomUUID()}`;
  const isSharded = isCluster && (await majorVersion(master)) >= SHARDED_SINCE;
  const first = await missing(master, [firstProbe(key)]);
  // If the first command was denied, there is no key, and the commands for other types would create one.
  const probes = commandProbes(key).filter(({ right }) => first.length === 0 || !MAKES_KEYS.includes(right));
  const others = isCluster ? [...clusterProbes(), ...(isSharded ? shardedProbes(key) : [])] : [];
  const found = [
    ...first,
    ...(await missing(master, [...probes, ...others])),
    ...(await missingKeys(master, keyPrefix, key)),
    ...(await missingChannelRights(master, key, isSharded)),
  ];
  const rights = [...new Set(found)];
  const count = probes.length + others.length;
  if (rights.length === 0) return ok(`user '${user}' has every right that locks need (${count} commands tried)`);
  return wrong(`user '${user}' lacks ${rights.join(' ')}`, `ACL SETUSER ${user} ${withoutCovered(rights).join(' ')}`);
}

/** Without patterns that others cover. Redis even refuses a channel pattern after `&*`. */
function withoutCovered(rights: readonly string[]): string[] {
  const patterns = rights.filter((right) => right.endsWith('*'));
  return rights.filter((right) =>
    patterns.every((pattern) => pattern === right || !right.startsWith(pattern.slice(0, -1))),
  );
}

const MAKES_KEYS = ['set', 'getset', 'hset', 'hsetnx', 'rpush', 'zadd'];

async function missing(master: Server, probes: readonly Probe[]): Promise<string[]> {
  const errors = await errorsOf(
    master,
    probes.map(({ command }) => command),
  );
  return probes.flatMap(({ right }, n) => {
    const what = denial(errors[n]);
    if (what === 'channel') return '&*';
    return what === 'command' ? `+${right}` : [];
  });
}

/** HDEL of a missing key needs the rights to read and to write, as locks do. */
async function missingKeys(master: Server, keyPrefix: string, ofLock: string): Promise<string[]> {
  const probes = keyProbes(keyPrefix, ofLock);
  const errors = await errorsOf(
    master,
    probes.map(({ key }) => ['hdel', key, 'none']),
  );
  return probes.flatMap(({ right }, n) => (denial(errors[n]) === 'key' ? right : []));
}

/** Sends the commands together. @returns the error of each command, or undefined if it succeeded */
function errorsOf(master: Server, commands: readonly (readonly string[])[]): Promise<unknown[]> {
  return Promise.all(
    commands.map(([name, ...args]) =>
      master.ask(name, ...args).then(
        () => undefined,
        (error: unknown) => error,
      ),
    ),
  );
}

async function majorVersion(master: Server): Promise<number> {
  const info = await infoOf(master, 'server').catch(() => undefined);
  return Number(info?.('redis_version')?.split('.')[0] ?? 0);
}

/** A command from docs/permissions.md, with arguments that change nothing. */
interface Probe {
  /** The name in an ACL rule: `cluster|slots`. */
  readonly right: string;
  readonly command: readonly string[];
}

/** How long the key of the check lasts at most, in milliseconds. */
const LIFETIME = '10000';
const SHA = '0'.repeat(40);

/** The first command. It creates the key as a string, which the commands for other types cannot change. */
function firstProbe(key: string): Probe {
  return probe('set', key, '', 'PX', LIFETIME, 'NX');
}

/** The commands that the library sends and those that its scripts call, because Redis checks the rights for both. */
function commandProbes(key: string): Probe[] {
  return [
    ...[probe('evalsha', SHA, '0'), probe('eval', 'return 1', '1', key), probe('ping'), probe('info', 'server')],
    ...[probe('scan', '0', 'COUNT', '1'), probe('time'), probe('publish', `${key}:nobody`, ''), probe('pubsub|numsub')],
    ...['type', 'exists', 'pttl', 'get', 'hgetall', 'hkeys', 'hlen', 'llen', 'zcard'].map((name) => probe(name, key)),
    ...['hget', 'hdel', 'hexists', 'hmget', 'hstrlen', 'zrem', 'zscore'].map((name) => probe(name, key, 'none')),
    ...['hset', 'hsetnx'].map((name) => probe(name, key, 'none', '')),
    ...['lrange', 'zrange', 'zcount', 'zremrangebyscore'].map((name) => probe(name, key, '0', '0')),
    ...[probe('lindex', key, '0'), probe('lrem', key, '0', ''), probe('rpush', key, ''), probe('zadd', key, '0', '')],
    ...['incrby', 'decrby'].map((name) => probe(name, key, 'no number')),
    ...[probe('pexpire', key, LIFETIME), probe('getset', key, '')],
    // GETSET has removed the expiry.
    ...[probe('set', key, '', 'PX', LIFETIME), probe('del', key)],
  ];
}

/** Additional commands for connections to a cluster. */
function clusterProbes(): Probe[] {
  return [
    ...[probe('cluster|slots'), probe('cluster|info'), probe('readonly'), probe('client|setname', 'doctor')],
    ...[probe('command|info', 'get'), probe('asking')],
  ];
}

/** Additional commands for clusters with sharded channels. */
function shardedProbes(key: string): Probe[] {
  return [probe('spublish', `${key}:nobody`, ''), probe('pubsub|shardnumsub')];
}

function probe(right: string, ...args: string[]): Probe {
  return { right, command: [...right.split('|'), ...args] };
}

/** Keys of a lock that nobody uses, each with the pattern in docs/permissions.md that allows it. */
function keyProbes(keyPrefix: string, key: string): { readonly right: string; readonly key: string }[] {
  return [
    { right: `~${keyPrefix}*`, key },
    { right: `~{${keyPrefix}*`, key: permitLeases(key) },
    { right: `~redisson_lock_*${keyPrefix}*`, key: fairQueue(key) },
    { right: '~nestjs_redis_lock_*', key: fairHeartbeats(key) },
    { right: '~nestjs_redis_lock_turns*', key: linePlaces(key) },
  ];
}

/** The missing rights to subscribe. They are tried on a separate connection. */
async function missingChannelRights(master: Server, key: string, isSharded: boolean): Promise<string[]> {
  const subscriber = await master.subscriber();
  try {
    const channel = lockChannel(key);
    const pattern = `${fairChannelPrefix(key)}${randomUUID()}:*`;
    const line = lineChannel(key, randomUUID());
    const missing = [
      ...(await attempt('subscribe', () => subscriber.subscribe('channel', channel))),
      ...(await attempt('subscribe', () => subscriber.subscribe('channel', clientChannel(randomUUID())))),
      ...(await attempt('subscribe', () => subscriber.subscribe('channel', line), '&nestjs_redis_lock_turn:*')),
      ...(await attempt('psubscribe', () => subscriber.subscribe('pattern', pattern))),
      ...(await attempt('unsubscribe', () => subscriber.unsubscribe('channel', channel))),
      ...(await attempt('punsubscribe', () => subscriber.unsubscribe('pattern', pattern))),
    ];
    if (!isSharded) return missing;
    return [
      ...missing,
      ...(await attempt('ssubscribe', () => subscriber.subscribe('sharded', channel))),
      ...(await attempt('sunsubscribe', () => subscriber.unsubscribe('sharded', channel))),
    ];
  } finally {
    subscriber.close();
  }
}

async function attempt(right: string, call: () => Promise<unknown>, channels = '&*'): Promise<string[]> {
  try {
    await call();
    return [];
  } catch (error) {
    const what = denial(error);
    if (what === 'channel') return [channels];
    return what === 'command' ? [`+${right}`] : [];
  }
}

/**
 * The kind of right that the user lacks. Undefined if there is no error, or the error has another cause.
 *
 * @throws the error if it did not come from the server, because it then says nothing about the user's rights
 */
function denial(error: unknown): 'command' | 'key' | 'channel' | undefined {
  if (error === undefined || error === null) return undefined;
  if ((error as Error).name !== 'ReplyError') throw error;
  const message = messageOf(error);
  if (errorCode(message) !== 'NOPERM') return undefined;
  const [, what] = /access (?:a|one of the) (key|channel)s?\b/i.exec(message) ?? [];
  return (what as 'key' | 'channel' | undefined) ?? 'command';
}
