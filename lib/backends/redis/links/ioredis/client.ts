import type { Cluster, Redis } from 'ioredis';

export type Client = Redis | Cluster;

export function isCluster(client: Client): client is Cluster {
  return client.isCluster;
}

/**
 * The database in which a client executes the next command. It is the `db` of its options until somebody calls
 * `select()` on it. ioredis notes the number when the command is written or queued.
 */
export function selectedDatabase(client: Redis): number {
  const { condition, options } = client as unknown as Pick<Redis, 'options'> & {
    condition?: { select?: number } | null;
  };
  return Number(condition?.select ?? options.db ?? 0);
}
