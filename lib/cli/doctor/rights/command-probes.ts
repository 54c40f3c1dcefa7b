/** A command of the recipe in docs/permissions.md, with arguments that change nothing. */
export interface Probe {
  /** As an ACL rule names it: `cluster|slots`. */
  readonly right: string;
  readonly command: readonly string[];
}

/** How long a key of the examination lasts at most, in milliseconds. */
const LIFETIME = '10000';
const SHA = '0'.repeat(40);

/** Comes first: it makes the key, a text, to which the commands for other types can do nothing. */
export function firstProbe(key: string): Probe {
  return probe('set', key, '', 'PX', LIFETIME, 'NX');
}

/** What the library sends, and what its scripts call: Redis checks the rights for both. */
export function commandProbes(key: string): Probe[] {
  return [
    ...[probe('evalsha', SHA, '0'), probe('eval', 'return 1', '1', key), probe('ping'), probe('info', 'server')],
    ...[probe('scan', '0', 'COUNT', '1'), probe('time'), probe('publish', `${key}:nobody`, '')],
    ...['type', 'exists', 'pttl', 'get', 'hgetall', 'hkeys', 'hlen', 'llen', 'zcard'].map((name) => probe(name, key)),
    ...['hget', 'hdel', 'hexists', 'zrem', 'zscore'].map((name) => probe(name, key, 'none')),
    ...['hset', 'hsetnx'].map((name) => probe(name, key, 'none', '')),
    ...['lrange', 'zrange', 'zcount', 'zremrangebyscore'].map((name) => probe(name, key, '0', '0')),
    ...[probe('lindex', key, '0'), probe('lrem', key, '0', ''), probe('rpush', key, ''), probe('zadd', key, '0', '')],
    ...['incrby', 'decrby'].map((name) => probe(name, key, 'no number')),
    ...[probe('pexpire', key, LIFETIME), probe('getset', key, '')],
    // GETSET has taken the expiry away.
    ...[probe('set', key, '', 'PX', LIFETIME), probe('del', key)],
  ];
}

/** What the connections to a cluster need besides. */
export function clusterProbes(key: string): Probe[] {
  return [
    ...[probe('cluster|slots'), probe('cluster|info'), probe('readonly'), probe('client|setname', 'doctor')],
    ...[probe('command|info', 'get'), probe('asking'), probe('spublish', `${key}:nobody`, '')],
  ];
}

function probe(right: string, ...args: string[]): Probe {
  return { right, command: [...right.split('|'), ...args] };
}
