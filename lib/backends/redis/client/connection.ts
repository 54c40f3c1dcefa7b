import type { Cluster, ClusterNode, ClusterOptions, Redis, RedisOptions } from 'ioredis';

/** A Redis Cluster, given by some of its nodes. @publicApi */
export interface ClusterConnection {
  readonly nodes: readonly ClusterNode[];
  readonly options?: ClusterOptions;
}

/**
 * Where Redis is: a URL, ioredis options (single server or Sentinel), cluster nodes, an existing ioredis client, or a
 * function that returns one. The library never closes or reconfigures a client that you created.
 *
 * @publicApi
 */
export type Connection = string | RedisOptions | ClusterConnection | Redis | Cluster | (() => Redis | Cluster);
