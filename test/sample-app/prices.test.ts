import { jest } from '@jest/globals';
import type { PriceList } from '../../sample-app/prices/prices.service.js';
import { StockService } from '../../sample-app/stock/stock.service.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { openShop, type TestShop } from './shop.js';

describe('the price list', () => {
  let redis: RedisServer;
  let shops: TestShop[];
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  beforeEach(async () => {
    shops = [await openShop({ redisUrl: redis.url }), await openShop({ redisUrl: redis.url })];
    await forget();
  });
  afterEach(() => Promise.all(shops.map((shop) => shop.close())));

  const ask = async (shop: TestShop, path = '/prices') => (await shop.request<PriceList>('GET', path)).body;
  const forget = () => shops[1]!.request('DELETE', '/prices');
  const computed = (lists: readonly PriceList[]) => new Set(lists.map(({ edition }) => edition)).size;
  const askers = Array.from({ length: 20 }, (_, n) => n % 2);

  it('is computed once for all who ask at the same moment on two replicas, and for those who ask later', async () => {
    await shops[0]!.put('lamp', 20);
    await shops[0]!.put('chair', 3);
    const lists = await Promise.all(askers.map((n) => ask(shops[n]!)));
    lists.push(await ask(shops[0]!), await ask(shops[1]!));
    expect(computed(lists)).toBe(1);
    expect(lists[0]!.prices).toEqual({ lamp: 4_900, chair: 5_900 });
  });

  it('is computed for each caller without the single flight', async () => {
    expect(computed(await Promise.all(askers.map((n) => ask(shops[n]!, '/prices/unshared'))))).toBe(20);
  });

  it('is computed anew after it was forgotten, also while it was being computed from what was in stock before', async () => {
    await shops[0]!.put('lamp', 20);
    const stock = jest.spyOn(shops[0]!.app.get(StockService), 'all');
    const early = ask(shops[0]!);
    await until(() => stock.mock.results.length > 0);
    await stock.mock.results[0]!.value;
    await shops[1]!.put('lamp', 3);
    await forget();
    expect((await ask(shops[1]!)).prices).toMatchObject({ lamp: 5_900 });
    expect((await early).prices).toMatchObject({ lamp: 4_900 });
    expect((await ask(shops[0]!)).prices).toMatchObject({ lamp: 5_900 });
  });
});
