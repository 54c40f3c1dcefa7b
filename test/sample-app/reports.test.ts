import { SchedulerRegistry } from '@nestjs/schedule';
import { LockService } from 'nestjs-redis-lock';
import { NightlyReportService, type Report } from '../../sample-app/reports/nightly-report.service.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { openShop, type TestShop } from './shop.js';

describe('the nightly report', () => {
  let redis: RedisServer;
  let shops: TestShop[];

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  beforeEach(async () => {
    shops = [await openShop({ redisUrl: redis.url }), await openShop({ redisUrl: redis.url })];
  });
  afterEach(() => Promise.all(shops.map((shop) => shop.close())));

  const reports = async (shop: TestShop) =>
    (await shop.request<{ reports: Report[]; skipped: number[] }>('GET', '/reports')).body;
  const run = (shop: TestShop) => shop.app.get(NightlyReportService).run();

  it('is due at three in the morning', () => {
    const jobs = [...shops[0]!.app.get(SchedulerRegistry).getCronJobs().values()];
    expect(jobs).toHaveLength(1);
    expect(jobs[0]!.nextDate().toFormat('HH:mm')).toBe('03:00');
  });

  it('is written by one replica when it is due on both', async () => {
    await shops[0]!.put('lamp', 3);
    await shops[0]!.put('chair', 4);
    await Promise.all(shops.map(run));
    const [one, other] = await Promise.all(shops.map(reports));
    expect([...one!.reports, ...other!.reports]).toEqual([expect.objectContaining({ articles: 2, pieces: 7 })]);
    expect(one!.skipped.length + other!.skipped.length).toBe(1);
    await until(async () => !(await shops[0]!.app.get(LockService).isLocked('report:nightly')));
  });

  it('is not written a second time by a replica whose clock is behind', async () => {
    await run(shops[0]!);
    await run(shops[1]!); // the first one has ended
    expect((await reports(shops[1]!)).reports).toEqual([]);
    expect((await reports(shops[1]!)).skipped).toHaveLength(1);
    await until(async () => !(await shops[0]!.app.get(LockService).isLocked('report:nightly')));
  });
});
