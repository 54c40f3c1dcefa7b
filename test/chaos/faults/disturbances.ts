import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { TcpProxy } from '../../support/network/tcp-proxy.js';
import type { RedisServer } from '../../support/servers/redis-server.js';

/** What disturbances break: a server, and the proxy that its clients use. */
export interface Disturbed {
  readonly redis: RedisServer;
  /** A connection to that server. */
  readonly admin: Redis;
  readonly proxy: TcpProxy;
  /** How long leases last, in milliseconds. */
  readonly lease: number;
}

/** Faults of the server and of the network that lose no data. Each of them breaks something, and repairs it. */
export const DISTURBANCES: Readonly<Record<string, (disturbed: Disturbed) => Promise<void>>> = {
  'Redis is stopped for a moment': ({ redis }) => stop(redis, 400),
  'Redis is stopped past leases': ({ redis, lease }) => stop(redis, lease + 500),
  'connections are half-open for a moment': ({ proxy }) => breakNetwork(proxy, 400, () => proxy.cutHalfOpen()),
  'connections are half-open past leases': ({ proxy, lease }) =>
    breakNetwork(proxy, lease + 500, () => proxy.cutHalfOpen()),
  'connections are refused': ({ proxy }) => breakNetwork(proxy, 500, () => proxy.refuse()),
  'replies are lost': ({ proxy }) => breakNetwork(proxy, 700, () => proxy.dropReplies({ close: true })),
  'packets are late': ({ proxy, lease }) => breakNetwork(proxy, lease, () => proxy.delay(150)),
  'scripts are forgotten': async ({ admin }) => void (await admin.script('FLUSH')),
  'connections are closed by Redis': async ({ admin }) => void (await admin.call('CLIENT', 'KILL', 'TYPE', 'normal')),
  'Redis is paused for clients': async ({ admin }) => void (await admin.call('CLIENT', 'PAUSE', '500')),
  'Redis is a replica for a moment': async ({ admin }) => {
    await admin.replicaof('127.0.0.1', 1);
    await sleep(300);
    await admin.replicaof('NO', 'ONE');
  },
  'Redis has no memory left': async ({ admin }) => {
    await admin.config('SET', 'maxmemory', '1');
    await sleep(400);
    await admin.config('SET', 'maxmemory', '0');
  },
};

async function stop(redis: RedisServer, time: number): Promise<void> {
  redis.pause();
  await sleep(time);
  redis.resume();
}

async function breakNetwork(proxy: TcpProxy, time: number, work: () => void | Promise<void>): Promise<void> {
  await work();
  await sleep(time);
  await proxy.heal();
}
