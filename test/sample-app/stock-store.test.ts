import { MemoryStockStore } from '../../sample-app/stock/memory-stock.store.js';
import { RedisStockStore } from '../../sample-app/stock/redis-stock.store.js';
import { StaleWriteException, type StockStore } from '../../sample-app/stock/stock.store.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';

describe.each(['memory', 'Redis'])('the stock in %s', (kind) => {
  let redis: RedisServer | undefined;
  let store: StockStore;

  beforeAll(async () => {
    if (kind === 'Redis') redis = await startRedis();
    store = redis ? new RedisStockStore(redis.url) : new MemoryStockStore();
  });
  afterAll(async () => {
    if (store instanceof RedisStockStore) await store.onApplicationShutdown();
    await redis?.stop();
  });
  beforeEach(() => Promise.all(['chair', 'table'].map((sku) => store.remove(sku))));

  it('knows what was written, and nothing else', async () => {
    await store.write([{ sku: 'chair', quantity: 3 }]);
    expect(await store.quantityOf('chair')).toBe(3);
    expect(await store.quantityOf('table')).toBeUndefined();
    expect(await store.all()).toEqual({ chair: 3 });
  });

  it('refuses a lower fencing token than it has seen, takes the same one again, and forgets the token with the article', async () => {
    const late = 1_760_000_000_000_001; // µs since 1970, as Redis gives them
    await store.write([{ sku: 'chair', quantity: 3, fencingToken: late }]);
    await store.write([{ sku: 'chair', quantity: 2, fencingToken: late }]);
    await expect(store.write([{ sku: 'chair', quantity: 9, fencingToken: late - 1 }])).rejects.toThrow(
      StaleWriteException,
    );
    expect(await store.quantityOf('chair')).toBe(2);
    await store.remove('chair');
    await store.write([{ sku: 'chair', quantity: 9, fencingToken: late - 1 }]);
    expect(await store.quantityOf('chair')).toBe(9);
  });

  it('makes no change when one of several is stale', async () => {
    await store.write([
      { sku: 'chair', quantity: 3, fencingToken: 5 },
      { sku: 'table', quantity: 3, fencingToken: 7 },
    ]);
    const changes = [
      { sku: 'chair', quantity: 1, fencingToken: 6 },
      { sku: 'table', quantity: 5, fencingToken: 6 },
    ];
    await expect(store.write(changes)).rejects.toThrow(/table/);
    expect(await store.all()).toEqual({ chair: 3, table: 3 });
  });
});
