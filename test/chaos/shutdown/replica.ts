// Run by deploy.test.ts: one replica of a shop, which serves requests, jobs and a cron job until it gets SIGTERM.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { BullModule, Processor, WorkerHost } from '@nestjs/bullmq';
import { Controller, Get, Injectable, type LoggerService, Module, Param } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import type { Job } from 'bullmq';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { LockExceptionFilter } from '../../../lib/nest/lock-exception.filter.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';

const url = process.argv[2];
const { hostname, port } = new URL(url);

function say(what: string, more: object = {}): void {
  process.stdout.write(`${JSON.stringify({ what, ...more })}\n`);
}

@Injectable()
class Orders {
  @DistributedLock('order:#<args[0]>')
  async write(_id: string): Promise<string> {
    await sleep(20);
    return 'written';
  }

  /** Of all calls that come meanwhile, the last one runs. */
  @DistributedLock({ key: 'index', onBusy: 'newest', waitTime: Number.POSITIVE_INFINITY })
  async index(): Promise<string | undefined> {
    await sleep(300);
    return 'indexed';
  }

  @Cron('* * * * * *')
  @DistributedLock({ key: 'report', onBusy: 'skip', waitTime: '1m' })
  async report(): Promise<void> {
    await sleep(700);
  }
}

@Processor('jobs', { concurrency: 3 })
class Jobs extends WorkerHost {
  @DistributedLock('parcel:#<args[0].data.parcel>')
  async process(_job: Job<{ parcel: number }>): Promise<void> {
    await sleep(50);
  }
}

@Controller()
class Shop {
  constructor(private readonly orders: Orders) {}

  /** Charges a card, which takes its time, and then needs the lock. */
  @Get('pay/:id')
  async pay(@Param('id') id: string): Promise<string> {
    await sleep(200);
    return this.orders.write(id);
  }

  @Get('index')
  async index(): Promise<string> {
    return (await this.orders.index()) ?? 'superseded';
  }
}

@Module({
  imports: [
    BullModule.forRoot({ connection: { host: hostname, port: Number(port) } }),
    BullModule.registerQueue({ name: 'jobs' }),
    ScheduleModule.forRoot(),
    RedisLockModule.forRoot({ connection: url, waitTime: '30s', shutdownTimeout: '8s' }),
  ],
  controllers: [Shop],
  providers: [Orders, Jobs, { provide: APP_FILTER, useClass: LockExceptionFilter }],
})
class AppModule {}

const logger: LoggerService = {
  log: () => {},
  warn: (message: unknown) => say('warn', { message: String(message) }),
  error: (message: unknown) => say('error', { message: String(message) }),
};
const app = await NestFactory.create(AppModule, { logger });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
say('ready', { url: await app.getUrl() });
