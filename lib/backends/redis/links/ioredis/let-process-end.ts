import type { Redis } from 'ioredis';
import { type Client, isCluster } from './client.js';

/** What ioredis has in private: the pause before it connects again, and the connection on which a cluster listens. */
interface ClientInternals {
  readonly reconnectTimeout?: { unref?(): void } | null;
  readonly subscriber?: { getInstance?(): Redis | null };
}

/**
 * Makes a client of ours, while it is connected or pauses before it connects again, no reason for the process to stay
 * alive. ioredis has no option for that. See RedisConnection for what does keep the process alive.
 */
export function letProcessEnd(client: Client): void {
  const internals = client as unknown as ClientInternals;
  client.on('reconnecting', () => internals.reconnectTimeout?.unref?.());
  if (isCluster(client)) {
    client.on('+node', letProcessEnd);
    client.on('ready', () => {
      const listening = internals.subscriber?.getInstance?.();
      if (listening) letProcessEnd(listening);
    });
  } else {
    client.on('connect', () => client.stream.unref());
    if (client.status !== 'connecting') client.stream?.unref();
  }
}
