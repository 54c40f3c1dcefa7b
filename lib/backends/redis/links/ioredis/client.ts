import type { Cluster, Redis } from 'ioredis';

export type Client = Redis | Cluster;

export function isCluster(client: Client): client is Cluster {
  return client.isCluster;
}
