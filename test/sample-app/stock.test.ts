import { LockService } from 'nestjs-redis-lock';
import { openShop, type TestShop } from './shop.js';

describe('stock', () => {
  let shop: TestShop;
  beforeEach(async () => {
    shop = await openShop();
  });
  afterEach(() => shop.close());

  const transfer = (from: string, to: string, quantity: number) =>
    shop.request('POST', '/stock/transfers', { from, to, quantity });

  it('is counted, listed and taken out of the range', async () => {
    await shop.put('chair', 3);
    await shop.put('table', 4);
    expect((await shop.request('GET', '/stock')).body).toEqual({ chair: 3, table: 4 });
    expect((await shop.request('GET', '/stock/table')).body).toEqual({ sku: 'table', quantity: 4 });
    expect((await shop.request('DELETE', '/stock/table')).status).toBe(204);
    expect((await shop.request('GET', '/stock/table')).status).toBe(404);
  });

  it('is more after a delivery', async () => {
    await shop.put('chair', 3);
    const delivery = await shop.request('POST', '/stock/chair/deliveries', { quantity: 4 });
    expect(delivery).toMatchObject({ status: 201, body: { sku: 'chair', quantity: 7 } });
    expect((await shop.request('POST', '/stock/lamp/deliveries', { quantity: 4 })).status).toBe(404);
    expect(await shop.quantityOf('chair')).toBe(7);
  });

  it('moves from one article to the other', async () => {
    await shop.put('chair', 10);
    await shop.put('table', 1);
    const { status, body } = await transfer('chair', 'table', 4);
    expect(status).toBe(201);
    expect(body).toEqual({ chair: 6, table: 5 });
    expect(await shop.quantityOf('table')).toBe(5);
  });

  it('loses no transfer, and nobody is stuck, when it moves in both directions at once', async () => {
    await shop.put('chair', 50);
    await shop.put('table', 50);
    const transfers = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        i % 2 === 0 ? transfer('chair', 'table', 1) : transfer('table', 'chair', 1),
      ),
    );
    expect(transfers.map(({ status }) => status)).toEqual(Array(40).fill(201));
    expect((await shop.request('GET', '/stock')).body).toEqual({ chair: 50, table: 50 });
  });

  it('does not move where there is too little, to itself, or to an article that is not there', async () => {
    await shop.put('chair', 3);
    await shop.put('table', 0);
    expect((await transfer('chair', 'table', 4)).status).toBe(409);
    expect((await transfer('chair', 'chair', 1)).status).toBe(400);
    expect((await transfer('chair', 'lamp', 1)).status).toBe(404);
    expect((await transfer('chair', 'table', -1)).status).toBe(400);
    expect(await shop.quantityOf('chair')).toBe(3);
  });

  it('is not counted while the article is being sold: 423, and when to come back', async () => {
    await shop.put('chair', 3);
    const lease = await shop.app.get(LockService).acquire('sku:chair', { leaseTime: '20s' });
    const { status, body, headers } = await shop.request('PUT', '/stock/chair', { quantity: 9 });
    expect(status).toBe(423);
    expect(body.error).toBe('Locked');
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(20);
    await lease.release();
    expect(await shop.quantityOf('chair')).toBe(3);
  });
});
