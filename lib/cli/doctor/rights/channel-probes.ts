import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { clientChannel, fairChannelPrefix, lockChannel } from '../../../backends/redis/lock-keys.js';
import { denial } from './denial.js';

/** Which rights to subscribe are missing, tried on a connection of its own. */
export async function missingChannelRights(master: Redis, key: string, isSharded: boolean): Promise<string[]> {
  const subscriber = master.duplicate({ lazyConnect: true, enableReadyCheck: false, retryStrategy: () => null });
  subscriber.on('error', () => {});
  try {
    await subscriber.connect();
    const channel = lockChannel(key);
    const pattern = `${fairChannelPrefix(key)}${randomUUID()}:*`;
    const missing = [
      ...(await attempt('subscribe', () => subscriber.subscribe(channel))),
      ...(await attempt('subscribe', () => subscriber.subscribe(clientChannel(randomUUID())))),
      ...(await attempt('psubscribe', () => subscriber.psubscribe(pattern))),
      ...(await attempt('unsubscribe', () => subscriber.unsubscribe(channel))),
      ...(await attempt('punsubscribe', () => subscriber.punsubscribe(pattern))),
    ];
    if (!isSharded) return missing;
    return [
      ...missing,
      ...(await attempt('ssubscribe', () => subscriber.ssubscribe(channel))),
      ...(await attempt('sunsubscribe', () => subscriber.sunsubscribe(channel))),
    ];
  } finally {
    subscriber.disconnect();
  }
}

async function attempt(right: string, call: () => Promise<unknown>): Promise<string[]> {
  try {
    await call();
    return [];
  } catch (error) {
    const what = denial(error);
    if (what === 'channel') return ['&*'];
    return what === 'command' ? [`+${right}`] : [];
  }
}
