import { LockService } from 'nestjs-redis-lock';
import { PaymentsService } from '../../sample-app/orders/payments.service.js';
import type { Receipt } from '../../sample-app/orders/receipt.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { openShop, type TestShop } from './shop.js';

describe('orders', () => {
  let shop: TestShop;
  beforeEach(async () => {
    shop = await openShop();
  });
  afterEach(() => shop.close());

  const order = (sku: string, quantity = 1, path = '/orders') => shop.request<Receipt>('POST', path, { sku, quantity });
  const atOnce = (count: number, path?: string) =>
    Promise.all(Array.from({ length: count }, () => order('lamp', 1, path)));

  it('sell what is in stock, and no more, to customers who come all at once', async () => {
    await shop.put('lamp', 10);
    const statuses = (await atOnce(30)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(10);
    expect(statuses.filter((status) => status === 409)).toHaveLength(20);
    expect(await shop.quantityOf('lamp')).toBe(0);
  });

  it('oversell without the decorator', async () => {
    await shop.put('lamp', 10);
    const sold = (await atOnce(30, '/orders/unlocked')).filter(({ status }) => status === 201).length;
    expect(sold).toBeGreaterThan(10);
    expect(sold + (await shop.quantityOf('lamp'))).toBeGreaterThan(10);
  });

  it('of one article are worked on one after the other, each with a higher fencing token', async () => {
    await shop.put('lamp', 10);
    const receipts = (await atOnce(10)).map(({ body }) => body).sort((a, b) => a.startedAt - b.startedAt);
    for (const [i, receipt] of receipts.slice(1).entries()) {
      expect(receipt.startedAt).toBeGreaterThanOrEqual(receipts[i]!.endedAt);
      expect(receipt.fencingToken).toBeGreaterThan(receipts[i]!.fencingToken!);
    }
  });

  it('of one article do not wait for those of another', async () => {
    await Promise.all([shop.put('lamp', 1), shop.put('chair', 1)]);
    const lease = await shop.app.get(LockService).acquire('sku:lamp');
    const lamp = order('lamp');
    expect((await order('chair')).status).toBe(201);
    await lease.release();
    expect((await lamp).status).toBe(201);
  });

  it('are answered with a receipt', async () => {
    await shop.put('lamp', 3);
    const { status, body } = await order('lamp', 2);
    expect(status).toBe(201);
    expect(body).toMatchObject({ sku: 'lamp', quantity: 2, replica: `shop-${process.pid}` });
    expect(await shop.quantityOf('lamp')).toBe(1);
  });

  it('that are sent again are paid once, and answered with the first receipt', async () => {
    await shop.put('lamp', 3);
    const send = () =>
      shop.request('POST', '/orders', { sku: 'lamp', quantity: 2 }, { 'idempotency-key': 'order-0001' });
    const [first, again] = await Promise.all([send(), send()]);
    expect(first).toMatchObject({ status: 201, body: again.body });
    expect(await shop.quantityOf('lamp')).toBe(1);
  });

  it('are refused where there is no such article, or the request makes no sense', async () => {
    expect((await order('lamp')).status).toBe(404);
    await shop.put('lamp', 1);
    expect((await order('lamp', 0)).status).toBe(400);
    expect((await order('lamp', 1.5)).status).toBe(400);
    expect((await order('a lamp')).status).toBe(400);
    expect((await shop.request('POST', '/orders', {})).status).toBe(400);
  });
});

describe('an order whose lock was lost', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('is refused by the stock and paid back, when another process has written meanwhile', async () => {
    const refunded: string[] = [];
    let pay: ((payment: string) => void) | undefined;
    const slow = {
      charge: () => new Promise<string>((resolve) => (pay = resolve)),
      refund: async (payment: string) => refunded.push(payment),
    };
    const shop = await openShop({ redisUrl: redis.url, overrides: [{ provide: PaymentsService, useValue: slow }] });
    const other = await openShop({ redisUrl: redis.url });

    await shop.put('lamp', 10);
    const order = shop.request('POST', '/orders', { sku: 'lamp', quantity: 1 });
    await until(() => pay);
    await other.app.get(LockService).forceRelease('sku:lamp');
    await other.put('lamp', 5);
    pay?.('payment-1');

    expect((await order).status).toBe(412);
    expect(refunded).toEqual(['payment-1']);
    expect(await shop.quantityOf('lamp')).toBe(5);
    await Promise.all([shop.close(), other.close()]);
  });
});
