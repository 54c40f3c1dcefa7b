import { createServer, type Server } from 'node:net';
import { Controller, Get, type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { LockUnavailableError } from '../../lib/engine/errors.js';
import { LockHealthIndicator } from '../../lib/health.js';
import { RedisLockModule } from '../../lib/nest/redis-lock.module.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import { LockService } from '../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../lib/service/redis-lock-options.js';
import { PLACES, Place } from '../support/places.js';
import { freePort } from '../support/servers/free-port.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';

@Controller()
class HealthController {
  constructor(
    private readonly checks: HealthCheckService,
    private readonly locks: LockHealthIndicator,
  ) {}

  @Get('health')
  @HealthCheck()
  check() {
    return this.checks.check([() => this.locks.isHealthy('locks')]);
  }
}

const silent = { warn: () => {}, error: () => {}, log: () => {} };

async function startApp(options: RedisLockOptions): Promise<INestApplication> {
  @Module({
    imports: [RedisLockModule.forRoot({ logger: silent, ...options }), TerminusModule.forRoot({ logger: false })],
    providers: [LockHealthIndicator],
    controllers: [HealthController],
  })
  class AppModule {}
  return NestFactory.create(AppModule, { logger: false, abortOnError: false });
}

describe('the health indicator, with terminus', () => {
  let redis: RedisServer;
  let app: INestApplication;
  let url: string;
  beforeAll(async () => {
    redis = await startRedis();
    app = await startApp({ connection: redis.url, commandTimeout: 500 });
    await app.listen(0, '127.0.0.1');
    url = `${await app.getUrl()}/health`;
  });
  afterAll(async () => {
    await app.close();
    await redis.stop();
  });

  const health = async () => {
    const response = await fetch(url);
    const { details } = (await response.json()) as { details: { locks: object } };
    return { code: response.status, locks: details.locks };
  };

  it('is up while Redis answers, and down while it does not', async () => {
    await until(async () => (await health()).code === 200); // the first answer may come late, while it connects
    expect(await health()).toMatchObject({ code: 200, locks: { status: 'up', problems: [], recentLosses: 0 } });
    redis.pause();
    const down = await health();
    redis.resume();
    expect(down).toMatchObject({
      code: 503,
      locks: { status: 'down', problems: [expect.stringContaining('no answer')] },
    });
    await until(async () => (await health()).code === 200);
  });

  it('stays up after a loss, which is a detail', async () => {
    const locks = app.get(LockService);
    await locks.acquire('order');
    await locks.forceRelease('order');
    expect(await health()).toMatchObject({ code: 200, locks: { status: 'up', recentLosses: 1, problems: [] } });
  });
});

describe.each(PLACES)('health() in %s', (name) => {
  it('reports that all is well, even while its connection is subscribed', async () => {
    const place = await Place.open(name);
    const [{ locks }, { locks: other }] = [place.service(), place.service()];
    await until(async () => (await locks.health()).healthy); // the first answer may come late, while it connects
    expect(await locks.health()).toMatchObject({ healthy: true, problems: [], responseTime: expect.any(Number) });
    const lease = await locks.acquire('order');
    const waiting = other.acquire('order');
    await until(async () => (await other.health()).listening === true);
    await lease.release();
    await (await waiting).release();
    await place.close();
  });
});

describe('the start of an application', () => {
  it('fails without Redis if connect is eager', async () => {
    const port = await freePort();
    const starting = startApp({ connection: `redis://127.0.0.1:${port}`, connect: 'eager', commandTimeout: 500 });
    const error = await starting.then(
      () => undefined,
      (reason) => reason,
    );
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(new RegExp(`connect\\(\\): .*127.0.0.1:${port}.*ECONNREFUSED`));
    expect(error.cause).toBeInstanceOf(Error);
  });

  it('continues with Redis if connect is eager', async () => {
    const redis = await startRedis();
    const app = await startApp({ connection: redis.url, connect: 'eager' });
    expect(await app.get(LockService).isLocked('order')).toBe(false);
    await app.close();
    await redis.stop();
  });

  it('continues without Redis if connect is lazy, and warns after two seconds, naming host and reason', async () => {
    const port = await freePort();
    const warnings: string[] = [];
    const logger = { warn: (message: string) => void warnings.push(message), error: () => {} };
    const locks = createLockService({ connection: `redis://127.0.0.1:${port}`, logger, commandTimeout: 100 });
    await until(() => warnings.length > 0, 15_000);
    expect(warnings).toEqual([
      expect.stringMatching(new RegExp(`^redis 127.0.0.1:${port}/0: not connected after 2 s \\(.*ECONNREFUSED`)),
    ]);
    await locks.close();
  });

  it('refuses a Redis older than 6.2, at each call', async () => {
    const old = await startOldRedis('6.0.16');
    const locks = createLockService({ connection: `redis://127.0.0.1:${old.port}`, logger: silent });
    await expect(locks.connect()).rejects.toThrow(/Redis 6\.0\.16 is too old; nestjs-redis-lock needs Redis 6\.2/);
    await expect(locks.connect()).rejects.toThrow(LockUnavailableError);
    for (let n = 0; n < 3; n++)
      await expect(locks.acquire('order', { waitTime: '1s' })).rejects.toThrow(/Redis 6\.0\.16 is too old/);
    expect(old.scripts).toBe(0);
    await locks.close();
    await old.close();
  });
});

/** What answers like a Redis of that version, as far as a client asks before its first script. */
async function startOldRedis(version: string) {
  const state = { scripts: 0 };
  const server: Server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      for (const [, command] of String(data).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
        const name = command.toLowerCase();
        if (name === 'info') {
          const text = `# Server\r\nredis_version:${version}\r\nloading:0\r\n`;
          socket.write(`$${text.length}\r\n${text}\r\n`);
        } else if (name === 'time') socket.write('*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n');
        else if (name === 'hello') socket.write('%1\r\n$5\r\nproto\r\n:3\r\n');
        else {
          if (name.startsWith('eval')) state.scripts++;
          socket.write('+OK\r\n');
        }
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return {
    port,
    get scripts() {
      return state.scripts;
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}
