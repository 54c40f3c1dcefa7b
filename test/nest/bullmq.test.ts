import { BullModule, getQueueToken, OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import type { Job, Queue } from 'bullmq';
import { DistributedLock } from '../../lib/nest/decorator/distributed-lock.decorator.js';
import { LockService } from '../../lib/service/lock-service.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { until } from '../support/until.js';
import { Section } from './support/section.js';
import { startApp } from './support/start-app.js';

const section = new Section();

@Processor('orders', { concurrency: 5 })
class OrdersProcessor extends WorkerHost {
  readonly completed: string[] = [];

  constructor(private readonly locks: LockService) {
    super();
  }

  @DistributedLock('order:#<args[0].data.orderId>')
  async process(job: Job<{ orderId: string }>) {
    await section.visit();
    return this.locks.isLocked(`order:${job.data.orderId}`);
  }

  @OnWorkerEvent('completed')
  @DistributedLock('completed')
  async onCompleted(job: Job) {
    this.completed.push(`${job.id}: ${job.returnvalue}`);
  }
}

describe('with @nestjs/bullmq', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('a processor with several jobs at once works on each order alone', async () => {
    const imports = [
      BullModule.forRoot({ connection: { host: '127.0.0.1', port: redis.port } }),
      BullModule.registerQueue({ name: 'orders' }),
    ];
    const app = await startApp({ imports, providers: [OrdersProcessor] }, { connection: redis.url });
    const processor = app.get(OrdersProcessor);
    const queue = app.get<Queue>(getQueueToken('orders'));
    await queue.addBulk(
      [1, 2, 3, 4].map((id) => ({ name: 'ship', data: { orderId: '7' }, opts: { jobId: `job-${id}` } })),
    );
    await until(() => processor.completed.length === 4);
    expect(processor.completed.sort()).toEqual(['job-1: true', 'job-2: true', 'job-3: true', 'job-4: true']);
    expect(section).toMatchObject({ most: 1, entered: 4 });
    await app.close();
  });
});
