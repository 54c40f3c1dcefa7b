// Run by deploy.test.ts: one replica of a shop, which serves requests, jobs and a cron job until it gets SIGTERM. Its
// modules are those of the docs.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { BullModule, Processor, WorkerHost } from '@nestjs/bullmq';
import {
  Controller,
  Get,
  Injectable,
  type LoggerService,
  Module,
  type OnApplicationShutdown,
  Param,
} from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { DelayedError, type Job } from 'bullmq';
import { Redis } from 'ioredis';
import type { LockBusyError } from '../../../lib/engine/errors.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { LockExceptionFilter } from '../../../lib/nest/lock-exception.filter.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';

const [url, platform] = process.argv.slice(2);
const { hostname, port } = new URL(url);

function say(what: string, more: object = {}): void {
  process.stdout.write(`${JSON.stringify({ what, ...more })}\n`);
}

/** What all bodies need to the end. */
@Injectable()
class Database implements OnApplicationShutdown {
  readonly redis = new Redis(url, { db: 1 });

  /** Says whether somebody else is inside. */
  async visit(place: string, time: number): Promise<void> {
    if ((await this.redis.hincrby('inside', place, 1)) > 1) say('two inside', { message: place });
    await sleep(time);
    await this.redis.hincrby('inside', place, -1);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.redis.quit();
  }
}

@Injectable()
class Orders {
  constructor(private readonly database: Database) {}

  @DistributedLock('order:#<args[0]>')
  async write(id: string): Promise<string> {
    await this.database.visit(`order ${id}`, 20);
    return 'written';
  }

  /** Of all calls that come meanwhile, the last one runs. */
  @DistributedLock({ key: 'index', onBusy: 'newest', waitTime: Number.POSITIVE_INFINITY })
  async index(): Promise<string | undefined> {
    const changes = (await this.database.redis.get('changes'))!;
    await this.database.visit('index', 300);
    await this.database.redis.set('indexed', changes);
    return 'indexed';
  }

  @Cron('*/2 * * * * *')
  @DistributedLock({ key: 'report', onBusy: 'skip', holdAtLeast: '1s' })
  async report(): Promise<void> {
    await this.database.visit('report', 700);
    say('reported');
  }
}

@Processor('jobs', { concurrency: 3 })
class Jobs extends WorkerHost {
  constructor(private readonly database: Database) {
    super();
  }

  @DistributedLock('parcel:#<args[0].data.parcel>')
  async process({ data }: Job<{ parcel: number; time: number }>): Promise<void> {
    await this.database.visit(`parcel ${data.parcel}`, data.time);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.worker.close();
  }
}

/** Puts jobs back whose lock is busy. */
@Processor('patient-jobs', { concurrency: 3 })
class PatientJobs extends WorkerHost {
  constructor(private readonly database: Database) {
    super();
  }

  @DistributedLock({ key: 'letter:#<args[0].data.parcel>', onBusy: putBack })
  async process({ data }: Job<{ parcel: number; time: number }>, _token?: string): Promise<void> {
    await this.database.visit(`letter ${data.parcel}`, data.time);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.worker.close();
  }
}

async function putBack(_busy: LockBusyError, job: Job, token?: string): Promise<void> {
  await job.moveToDelayed(Date.now() + 200 + 200 * Math.random(), token);
  throw new DelayedError();
}

@Controller()
class Shop {
  constructor(
    private readonly orders: Orders,
    private readonly database: Database,
  ) {}

  /** Charges a card, which takes its time, and then needs the lock. */
  @Get('pay/:id')
  async pay(@Param('id') id: string): Promise<string> {
    say('arrived');
    await sleep(200);
    return this.orders.write(id);
  }

  @Get('index')
  async index(): Promise<string> {
    say('arrived');
    await this.database.redis.incr('changes');
    return (await this.orders.index()) ?? 'superseded';
  }
}

@Module({
  imports: [
    BullModule.forRoot({ connection: { host: hostname, port: Number(port) } }),
    BullModule.registerQueue({ name: 'jobs' }, { name: 'patient-jobs' }),
    ScheduleModule.forRoot(),
    RedisLockModule.forRoot({ connection: url, waitTime: '30s' }),
  ],
  controllers: [Shop],
  providers: [Database, Orders, Jobs, PatientJobs, { provide: APP_FILTER, useClass: LockExceptionFilter }],
})
class AppModule {}

const logger: LoggerService = {
  log: () => {},
  warn: (message: unknown) => say('warn', { message: String(message) }),
  error: (message: unknown) => say('error', { message: String(message) }),
};
const adapter = platform === 'fastify' ? new FastifyAdapter({ keepAliveTimeout: 5_000 }) : new ExpressAdapter();
const app = await NestFactory.create(AppModule, adapter, { logger });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
say('ready', { message: await app.getUrl() });
