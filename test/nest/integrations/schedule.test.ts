import { ConsoleLogger, Injectable, Logger } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, SchedulerRegistry, Timeout } from '@nestjs/schedule';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { startApp } from '../support/start-app.js';

/** What ran, over all "replicas". */
const ran: string[] = [];

@Injectable()
class Reports {
  @Cron('* * * * * *', { name: 'below' })
  @DistributedLock({ key: 'report:below:#<method>', onBusy: 'skip', holdAtLeast: '600ms' })
  async below() {
    ran.push('below');
  }

  @DistributedLock({ key: 'report:above', onBusy: 'skip', holdAtLeast: '600ms' })
  @Cron('* * * * * *', { name: 'above' })
  async above() {
    ran.push('above');
  }

  @DistributedLock({ key: 'report:interval', onBusy: 'skip' })
  @Interval('often', 20)
  async often() {
    ran.push('often');
  }

  @Timeout('once', 10)
  @DistributedLock('report:once')
  async once() {
    ran.push('once');
  }
}

describe('with @nestjs/schedule', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('a cron job on several replicas runs once at each of its times', async () => {
    const replicas = await Promise.all(
      [1, 2, 3].map(() =>
        startApp({ imports: [ScheduleModule.forRoot()], providers: [Reports] }, { connection: redis.url }),
      ),
    );
    const registry = replicas[0].get(SchedulerRegistry);
    expect([...registry.getCronJobs().keys()].sort()).toEqual(['above', 'below']);
    expect(registry.getIntervals()).toEqual(['often']);

    const ticks: number[] = [];
    registry.getCronJob('below').addCallback(() => void ticks.push(ticks.length));
    await until(() => ticks.length === 3);
    const runsOf = (job: string) => ran.filter((name) => name === job).length;
    await until(() => runsOf('below') >= 2 && runsOf('above') >= 2);
    // The scheduler logs each job that still waits for its lock when its replica is closed.
    Logger.overrideLogger({ log() {}, warn() {}, error() {} });
    for (const replica of replicas) {
      replica.get(SchedulerRegistry).deleteInterval('often');
      await replica.close();
    }
    Logger.overrideLogger(new ConsoleLogger());

    for (const job of ['below', 'above']) {
      expect(runsOf(job)).toBeGreaterThanOrEqual(2);
      // Another replica may have begun one more.
      expect(runsOf(job)).toBeLessThanOrEqual(ticks.length + 1);
    }
    expect(runsOf('often')).toBeGreaterThan(1);
    expect(runsOf('once')).toBe(3);
  });
});
