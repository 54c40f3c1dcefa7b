import { isClientRecord } from '../../support/left-behind.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

/**
 * One token clock per slot, and the last token of each fenced lock, which remain. Records of clients remain for half a
 * minute.
 */
const KEPT = /^(nestjs_redis_lock_clock|redisson_lock_token:)/;

/**
 * Keys and subscriptions that remain after every process has ended. Those of a killed process have some seconds to
 * expire.
 */
export async function leftInRedis(server: RedisServer): Promise<string[]> {
  const client = server.client();
  const look = async () => {
    const keys = (await client.keys('*')).filter((key) => !KEPT.test(key) && !isClientRecord(key));
    const channels = ((await client.pubsub('CHANNELS')) as string[]).filter((channel) => !channel.startsWith('__'));
    const patterns = Number(await client.pubsub('NUMPAT'));
    return [...keys, ...channels.map((channel) => `subscription ${channel}`), ...(patterns > 0 ? ['a pattern'] : [])];
  };
  try {
    await until(async () => (await look()).length === 0, 10_000).catch(() => {});
    return await look();
  } finally {
    client.disconnect();
  }
}
