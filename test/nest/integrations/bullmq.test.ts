import { setTimeout as sleep } from 'node:timers/promises';
import { BullModule, getQueueToken, OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import { DelayedError, type Job, type Queue } from 'bullmq';
import type { LockBusyError } from '../../../lib/engine/errors.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { Section } from '../support/section.js';
import { startApp } from '../support/start-app.js';

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

/** How long BullMQ regards a job as running without a sign of it, in milliseconds. */
const JOB_LEASE = 2_500;

@Processor('parcels', { lockDuration: JOB_LEASE, stalledInterval: JOB_LEASE / 2 })
class ParcelsProcessor extends WorkerHost {
  runs = 0;
  completed = 0;
  stalled = 0;

  @DistributedLock('parcel:#<args[0].data.id>')
  async process(_job: Job<{ id: string }>) {
    this.runs++;
  }

  @OnWorkerEvent('completed')
  onCompleted() {
    this.completed++;
  }

  @OnWorkerEvent('stalled')
  onStalled() {
    this.stalled++;
  }
}

/** As in docs/integrations.md: a busy lock puts the job back. */
@Processor('letters')
class LettersProcessor extends WorkerHost {
  readonly sent: string[] = [];
  postponed = 0;

  @DistributedLock({ key: 'letter:#<args[0].data.to>', onBusy: putBack })
  async process(job: Job<{ to: string }>, _token?: string) {
    this.sent.push(`${job.data.to}, attempt ${job.attemptsMade}`);
  }
}

async function putBack(this: LettersProcessor, _busy: LockBusyError, job: Job, token?: string): Promise<void> {
  this.postponed++;
  await job.moveToDelayed(Date.now() + 50, token);
  throw new DelayedError();
}

/** As in docs/detach-and-adopt.md: adopts the lock of whoever added the job; the first run fails. */
@Processor('invoices')
class InvoicesProcessor extends WorkerHost {
  readonly runs: string[] = [];

  constructor(private readonly locks: LockService) {
    super();
  }

  async process({ data, attemptsMade }: Job<{ ticket: string }>) {
    let how = 'adopted';
    await using lease = await this.locks.adopt(data.ticket).catch((error) => {
      how = `acquired after ${error.name}`;
      return this.locks.acquire('invoice');
    });
    this.runs.push(`${how}, ${lease.held}`);
    if (attemptsMade === 0) throw new Error('the printer is on fire');
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

  it('a job that waits for a lock for longer than the lease of jobs is not stalled', async () => {
    const imports = [
      BullModule.forRoot({ connection: { host: '127.0.0.1', port: redis.port } }),
      BullModule.registerQueue({ name: 'parcels' }),
    ];
    const app = await startApp({ imports, providers: [ParcelsProcessor] }, { connection: redis.url });
    const processor = app.get(ParcelsProcessor);
    const lease = await app.locks.acquire('parcel:7');
    await app.get<Queue>(getQueueToken('parcels')).add('send', { id: '7' });
    await until(async () => (await app.locks.inspect('parcel:7')).waiting === 1);
    await sleep(4 * JOB_LEASE);
    await lease.release();
    await until(() => processor.completed === 1);
    expect(processor).toMatchObject({ runs: 1, stalled: 0 });
    await app.close();
  });

  it('a job whose lock is busy frees the slot of its worker, and does not use up an attempt', async () => {
    const imports = [
      BullModule.forRoot({ connection: { host: '127.0.0.1', port: redis.port } }),
      BullModule.registerQueue({ name: 'letters' }),
    ];
    const app = await startApp({ imports, providers: [LettersProcessor] }, { connection: redis.url });
    const processor = app.get(LettersProcessor);
    const queue = app.get<Queue>(getQueueToken('letters'));
    const lease = await app.locks.acquire('letter:ann');
    await queue.add('send', { to: 'ann' });
    await until(() => processor.postponed > 0);
    await queue.add('send', { to: 'bob' });
    await until(() => processor.sent.length === 1); // the worker has one slot
    expect(processor.sent).toEqual(['bob, attempt 0']);
    await until(() => processor.postponed > 2);
    await lease.release();
    await until(() => processor.sent.length === 2);
    expect(processor.sent[1]).toBe('ann, attempt 0');
    await app.close();
  });

  it('a job adopts the lock of the code that added it, and acquires it when it is run again', async () => {
    const imports = [
      BullModule.forRoot({ connection: { host: '127.0.0.1', port: redis.port } }),
      BullModule.registerQueue({ name: 'invoices' }),
    ];
    const app = await startApp({ imports, providers: [InvoicesProcessor] }, { connection: redis.url });
    const processor = app.get(InvoicesProcessor);
    const lease = await app.locks.acquire('invoice');
    const ticket = await lease.detach({ for: '5m' });
    const job = await app.get<Queue>(getQueueToken('invoices')).add('send', { ticket }, { attempts: 2 });
    await until(async () => (await job.getState()) === 'completed');
    expect(processor.runs).toEqual(['adopted, true', 'acquired after LockLostError, true']);
    expect(await app.locks.isLocked('invoice')).toBe(false);
    await app.close();
  });
});
