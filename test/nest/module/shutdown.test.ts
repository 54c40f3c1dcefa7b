import {
  type BeforeApplicationShutdown,
  Controller,
  Get,
  Injectable,
  Module,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { LazyModuleLoader, NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { until } from '../../support/until.js';
import { Section } from '../support/section.js';
import { sharedMemory, startApp } from '../support/start-app.js';

const section = new Section();

@Injectable()
class Database implements OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown {
  open = true;
  closing: (() => Promise<void>) | undefined;
  async onModuleDestroy() {
    await this.closing?.();
  }
  async beforeApplicationShutdown() {
    await this.closing?.();
  }
  async onApplicationShutdown() {
    await this.closing?.();
  }
}

@Injectable()
class Jobs {
  constructor(private readonly database: Database) {}

  signal: AbortSignal | undefined;

  @DistributedLock('job')
  async run() {
    await section.visit();
    return this.more();
  }

  @DistributedLock('job')
  async stay() {
    this.signal = currentLease()?.signal;
    await section.visit();
  }

  @DistributedLock('more')
  async more() {
    return this.database.open ? 'done' : 'too late';
  }
}

@Module({ providers: [Database], exports: [Database] })
class DatabaseModule {}

@Module({ imports: [DatabaseModule] })
class Middle {}

@Module({ imports: [Middle] })
class Outer {}

describe('when the application goes down', () => {
  beforeEach(() => Object.assign(section, new Section()));

  it('running bodies end first, with everything that they need, and so do those that wait for them', async () => {
    const app = await startApp({ providers: [Jobs, Database] }, { backend: 'memory' });
    const jobs = app.get(Jobs);
    const open = section.shut();
    const running = jobs.run();
    await until(() => section.occupied);
    const waiting = jobs.run();
    let down = false;
    const closing = app.close().then(() => {
      down = true;
    });

    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(down).toBe(false);
    open();
    expect(await Promise.all([running, waiting])).toEqual(['done', 'done']);
    await closing;
    expect(section.entered).toBe(2);
    await expect(jobs.run()).rejects.toMatchObject({ name: 'LockAbortedError', byShutdown: true });
  });

  it.each([
    ['beside it', []],
    ['far below it', [Outer]],
  ])('locks are granted in the shutdown hooks of all other modules: %s', async (_, modules) => {
    const app = await startApp({ imports: [...modules, DatabaseModule], providers: [Jobs] }, { backend: 'memory' });
    const jobs = app.get(Jobs);
    const locked: unknown[] = [];
    app.get(Database).closing = async () => void locked.push(await jobs.more());
    await app.close();
    expect(locked).toEqual(['done', 'done', 'done']);
  });

  it.each([
    ['beside it', []],
    ['far below it', [Outer]],
  ])('what runs or waits ends before its database is closed, in a module %s', async (_, modules) => {
    const app = await startApp({ imports: [...modules, DatabaseModule], providers: [Jobs] }, { backend: 'memory' });
    const jobs = app.get(Jobs);
    const database = app.get(Database);
    const open = section.shut();
    const calls = [jobs.run(), jobs.run()];
    await until(() => section.occupied);
    database.onApplicationShutdown = async () => {
      database.open = false;
    };
    const closing = app.close();
    await new Promise((resolve) => setTimeout(resolve, 50)); // whatever does not wait has been closed by now
    open();
    expect(await Promise.all(calls)).toEqual(['done', 'done']);
    await closing;
    expect(database.open).toBe(false);
  });

  it('a request that closes the application and waits for that is told so, once', async () => {
    const warnings: string[] = [];
    @Controller()
    class Admin {
      app: { close(): Promise<void> } | undefined;
      closing: Promise<void> | undefined;

      @Get('close')
      @DistributedLock('admin')
      async shutDown() {
        this.closing = this.app?.close();
        await Promise.race([this.closing, new Promise((resolve) => setTimeout(resolve, 1_000))]);
        return 'closed';
      }
    }
    const logger = { warn: (message: string) => void warnings.push(message), error: () => {} };
    @Module({
      imports: [RedisLockModule.forRoot({ backend: 'memory', shutdownTimeout: 100, logger })],
      controllers: [Admin],
    })
    class App {}
    const app = await NestFactory.create(App, { logger: false });
    await app.listen(0, '127.0.0.1');
    const admin = app.get(Admin);
    admin.app = app;
    expect(await (await fetch(`${await app.getUrl()}/close`)).text()).toBe('closed');
    await admin.closing;
    const shutdown = warnings.filter((line) => line.startsWith('Shutdown'));
    expect(shutdown).toEqual([
      expect.stringMatching(/still held after 100 ms \(admin\).*let it call app\.close\(\) without await/),
    ]);
  });

  it('a module that is loaded lazily cannot import RedisLockModule', async () => {
    const late = (name?: string) => RedisLockModule.forRoot({ name, backend: 'memory' });
    const bare = await Test.createTestingModule({}).compile();
    await bare.init();
    await expect(bare.get(LazyModuleLoader).load(() => late())).rejects.toThrow(/loaded lazily.*into the root module/);
    await bare.close();
    const app = await startApp({});
    await until(async () => {
      const error = await app
        .get(LazyModuleLoader)
        .load(() => late('late'))
        .catch((error: Error) => error);
      return error instanceof Error && /loaded lazily/.test(error.message);
    });
    await app.close();
  });

  it('a body that outlasts shutdownTimeout is told to stop, and its lock lapses with its lease', async () => {
    const options = sharedMemory({ shutdownTimeout: 20 });
    const app = await startApp({ providers: [Jobs, Database] }, options());
    const jobs = app.get(Jobs);
    const open = section.shut();
    const running = jobs.stay();
    await until(() => section.occupied);
    await app.close();
    expect(jobs.signal?.reason).toMatchObject({ name: 'LockAbortedError' });

    const next = await startApp({}, options());
    expect(await next.locks.isLocked('job')).toBe(true);
    open();
    await running;
    expect(await next.locks.isLocked('job')).toBe(true);
    await next.locks.forceRelease('job');
    await next.close();
  });

  it('does not wait for the method that closes the application, and leaves its lock free', async () => {
    @Injectable()
    class Admin {
      app: { close(): Promise<void> } | undefined;

      @DistributedLock('admin')
      async shutDown() {
        await this.app?.close();
        return 'closed';
      }
    }
    const options = sharedMemory({ shutdownTimeout: '1m' });
    const [app, other] = [await startApp({ providers: [Admin] }, options()), await startApp({}, options())];
    const admin = app.get(Admin);
    admin.app = app;
    expect(await admin.shutDown()).toBe('closed');
    await until(async () => !(await other.locks.isLocked('admin')));
    await other.close();
  });
});
