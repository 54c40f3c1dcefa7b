import type { Cluster, ClusterNode, ClusterOptions, Redis, RedisOptions } from 'ioredis';

/**
 * A type of ioredis. It is `never` if ioredis is not installed, because the compiler treats its types as `any` there.
 */
type IfInstalled<T> = 0 extends 1 & T ? never : T;

/** A Redis Cluster, given by some of its nodes. @publicApi */
export interface ClusterConnection {
  readonly nodes: readonly ClusterNode[];
  readonly options?: ClusterOptions;
}

/**
 * A client that node-redis (the package `redis`, 5 or 6) has created: `createClient()`, `createSentinel()` or
 * `createCluster()`. @publicApi
 */
export interface NodeRedisLike {
  connect(): Promise<unknown>;
  destroy(): void;
  sendCommand(...args: never[]): Promise<unknown>;
}

/**
 * Options for node-redis clients that the library creates: those of `createClient()`, `createSentinel()` or
 * `createCluster()`. @publicApi
 */
export interface NodeRedisConnection {
  readonly client: 'node-redis';
  readonly url?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly database?: number | undefined;
  readonly socket?: NodeRedisSocket | undefined;
  readonly RESP?: 2 | 3 | undefined;
  /** A master behind Sentinels: its name, and the addresses of the Sentinels. */
  readonly name?: string | undefined;
  readonly sentinelRootNodes?: readonly { readonly host: string | undefined; readonly port: number }[];
  readonly nodeClientOptions?: object | undefined;
  readonly sentinelClientOptions?: object | undefined;
  /** A cluster: some of its nodes, and the options for all nodes. */
  readonly rootNodes?: readonly object[] | undefined;
  readonly defaults?: object | undefined;
  /** The addresses of nodes for this process, by the addresses that the servers report. Needed behind NAT. */
  readonly nodeAddressMap?:
    | Readonly<Record<string, NodeAddress>>
    | ((address: string) => NodeAddress | undefined)
    | undefined;
}

/** The `socket` of `createClient()`. @publicApi */
export interface NodeRedisSocket {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly path?: string | undefined;
  readonly tls?: boolean | undefined;
  readonly [other: string]: unknown;
}

/** @publicApi */
export interface NodeAddress {
  readonly host: string;
  readonly port: number;
}

/** An existing client. @publicApi */
export type Client = IfInstalled<Redis> | IfInstalled<Cluster> | NodeRedisLike;

/**
 * The Redis to use: a URL, ioredis options (single server or Sentinel), cluster nodes, `{ client: 'node-redis', … }`,
 * an existing client of ioredis or node-redis, or a function that returns one. The library never closes or reconfigures
 * a client that you created. From a node-redis client, it only reads the settings, and opens its own connections with
 * them. An ioredis client is used directly: do not call `select()` on it, because locks are refused while it is in
 * another database than its options name.
 *
 * @publicApi
 */
export type Connection =
  | string
  | IfInstalled<RedisOptions>
  | ClusterConnection
  | NodeRedisConnection
  | Client
  | (() => Client);
