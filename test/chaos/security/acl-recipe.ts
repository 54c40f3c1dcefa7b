/**
 * The least rights with which every lock and synchronizer works, for the default `keyPrefix`: what stands in the README. Each
 * is shown to be needed by acl.test.ts.
 */
export const ACL_RECIPE = {
  keys: ['~lock:*', '~{lock:*', '~redisson_lock_*lock:*', '~nestjs_redis_lock_*'],
  /** `&*` because Redis lets nobody subscribe to a pattern, as waiters of fair locks do, that is not itself in the list. */
  channels: ['&*'],
  /** Instead of that, where there are no fair locks: releases, and what a client hears of forced ones. */
  channelsWithoutFairLocks: ['&redisson_*', '&nestjs_redis_lock_client:*'],
  /** Of the connections. */
  connection: [
    '+evalsha',
    '+eval',
    '+ping',
    '+info',
    '+scan',
    '+subscribe',
    '+unsubscribe',
    '+psubscribe',
    '+punsubscribe',
  ],
  /** What the scripts call. */
  scripts: [
    ...['+time', '+publish', '+type', '+exists', '+del', '+pexpire', '+pttl'],
    ...['+get', '+set', '+getset', '+incrby', '+decrby'],
    ...['+hget', '+hset', '+hsetnx', '+hdel', '+hexists', '+hgetall', '+hkeys', '+hlen'],
    ...['+hmget', '+hstrlen'],
    ...['+lindex', '+llen', '+lrange', '+lrem', '+rpush'],
    ...['+zadd', '+zcard', '+zcount', '+zrange', '+zrem', '+zremrangebyscore', '+zscore'],
  ],
  /** With `minReplicas` only. */
  replicas: ['+wait'],
  /** On a cluster only. */
  cluster: [
    '+cluster|slots',
    '+cluster|info',
    '+readonly',
    '+client|setname',
    '+command|info',
    '+asking',
    '+spublish',
    '+ssubscribe',
    '+sunsubscribe',
  ],
} as const;
