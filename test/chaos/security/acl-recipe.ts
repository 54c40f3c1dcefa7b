/**
 * The minimum of rights with which every lock and synchronizer works, for the default `keyPrefix`, as listed in
 * docs/permissions.md. acl.test.ts shows that each of them is needed.
 */
export const ACL_RECIPE = {
  keys: ['~lock:*', '~{lock:*', '~redisson_lock_*lock:*', '~nestjs_redis_lock_*'],
  /**
   * `&*` is needed because waiters of fair locks subscribe to a pattern, and Redis allows only patterns that are
   * themselves in the list.
   */
  channels: ['&*'],
  /** Used instead if there are no fair locks: for messages about releases and forced releases. */
  channelsWithoutFairLocks: ['&redisson_*', '&nestjs_redis_lock_client:*', '&nestjs_redis_lock_turn:*'],
  /** Needed by the connections. */
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
  /** Called by the scripts. */
  scripts: [
    ...['+time', '+publish', '+pubsub|numsub', '+type', '+exists', '+del', '+pexpire', '+pttl'],
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
    '+pubsub|shardnumsub',
    '+ssubscribe',
    '+sunsubscribe',
  ],
} as const;
