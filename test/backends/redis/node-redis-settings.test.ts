import { createClient, RESP_TYPES } from 'redis';
import { createClient as createClient5, RESP_TYPES as RESP_TYPES_5 } from 'redis5';
import type { Connection } from '../../../lib/backends/redis/links/connection.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { until } from '../../support/until.js';
import { RedisWorld } from './redis-world.js';

const silent = { warn: () => {}, error: () => {} };

const typeMapping = {
  [RESP_TYPES.BLOB_STRING]: Buffer,
  [RESP_TYPES.SIMPLE_STRING]: Buffer,
  [RESP_TYPES.NUMBER]: String,
};
const typeMapping5 = {
  [RESP_TYPES_5.BLOB_STRING]: Buffer,
  [RESP_TYPES_5.SIMPLE_STRING]: Buffer,
  [RESP_TYPES_5.NUMBER]: String,
};

describe('node-redis that turns answers into Buffers', () => {
  const world = new RedisWorld();
  let locks: LockService;

  beforeEach(() => world.redis.flushall());
  afterEach(() => locks.close());

  it.each<[string, (url: string) => unknown]>([
    ['by commandOptions', (url) => createClient({ url, commandOptions: { typeMapping } })],
    ['by withTypeMapping()', (url) => createClient({ url }).withTypeMapping(typeMapping)],
    ['by commandOptions of version 5', (url) => createClient5({ url, commandOptions: { typeMapping: typeMapping5 } })],
    ['by withTypeMapping() of version 5', (url) => createClient5({ url, RESP: 3 }).withTypeMapping(typeMapping5)],
    ['by options', (url) => ({ client: 'node-redis', url, commandOptions: { typeMapping } })],
  ])('%s: locks are acquired, awaited and released', async (_, connect) => {
    const connection = connect(world.server.url) as Connection;
    locks = createLockService({ connection, waitTime: '20s', outageTimeout: '2s', logger: silent });
    const first = await locks.acquire('order');
    expect(first.fencingToken).toBeGreaterThan(1e15);
    const waiting = locks.withLock('order', () => 'entered');
    await until(async () => (await world.connections('pubsub')).length === 1);
    await first.release();
    expect(await waiting).toBe('entered');
    expect(await locks.isLocked('order')).toBe(false);
  });
});
