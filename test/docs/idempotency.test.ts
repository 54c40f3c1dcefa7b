import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  Body,
  ConflictException,
  Controller,
  HttpCode,
  type INestApplication,
  InternalServerErrorException,
  type NestInterceptor,
  Param,
  Post,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { LockService, RedisLockModule } from 'nestjs-redis-lock';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { BLOCKS, writeBlocks } from './support/compile.js';
import { readPages } from './support/markdown.js';
import { typescriptBlocks } from './support/typescript-blocks.js';

const folder = join(BLOCKS, 'idempotency');

/** The interceptor, exactly as the page shows it. */
async function interceptorOfPage(): Promise<Type<NestInterceptor>> {
  const blocks = typescriptBlocks(readPages()).filter(({ place }) => place.startsWith('docs/idempotency.md'));
  await writeBlocks(blocks, folder);
  return (await import(join(folder, blocks[0].file))).Idempotent;
}

interface Running {
  readonly app: INestApplication;
  readonly locks: LockService;
  readonly runs: string[];
  /** Lets the slow handler end. */
  end(): void;
  pay(
    path: string,
    key: string | undefined,
    body: object,
  ): Promise<{ readonly status: number; readonly body: unknown }>;
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('the idempotent handlers of the page, on %s', (_, adapter) => {
  let redis: RedisServer;
  let Idempotent: Type<NestInterceptor>;
  const open: Running[] = [];
  beforeAll(async () => {
    redis = await startRedis();
    Idempotent = await interceptorOfPage();
  }, 60_000);
  afterAll(async () => {
    await redis.stop();
    await rm(folder, { recursive: true, force: true });
  });
  afterEach(async () => {
    for (const { app } of open.splice(0)) await app.close();
    const admin = redis.client();
    await admin.flushall();
  });

  /** Starts an application as another replica would run it. */
  async function replica(): Promise<Running> {
    const runs: string[] = [];
    let end!: () => void;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });

    @Controller('payments')
    @UseInterceptors(Idempotent)
    class Payments {
      @Post('slow')
      async slow(@Body() { cents }: { cents: number }) {
        runs.push('slow');
        await ended;
        return { paid: cents, at: new Date(0) };
      }

      @Post('refused')
      async refused() {
        runs.push('refused');
        throw new ConflictException('The account is closed');
      }

      @Post('broken')
      async broken() {
        runs.push('broken');
        throw new InternalServerErrorException('The bank does not answer');
      }

      @Post(':account')
      @HttpCode(202)
      async pay(@Param('account') account: string, @Body() { cents }: { cents: number }) {
        runs.push(account);
        return { account, paid: cents, run: runs.length };
      }
    }

    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ connection: redis.url, shutdownTimeout: 10 })],
      controllers: [Payments],
    }).compile();
    const app = module.createNestApplication(adapter() as ExpressAdapter);
    app.useLogger(false);
    await app.listen(0, '127.0.0.1');
    const url = await app.getUrl();
    const running: Running = {
      app,
      locks: app.get(LockService),
      runs,
      end,
      async pay(path, key, body) {
        const headers = { 'content-type': 'application/json', ...(key !== undefined && { 'idempotency-key': key }) };
        const answer = await fetch(`${url}/payments/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
        return { status: answer.status, body: await answer.json() };
      },
    };
    open.push(running);
    return running;
  }

  it('run once for a request and its repetitions, on all replicas, with the same answer', async () => {
    const [one, two] = [await replica(), await replica()];
    const first = await one.pay('alice', 'key-00001', { cents: 5 });
    expect(first).toEqual({ status: 202, body: { account: 'alice', paid: 5, run: 1 } });
    expect(await one.pay('alice', 'key-00001', { cents: 5 })).toEqual(first);
    expect(await two.pay('alice', 'key-00001', { cents: 5 })).toEqual(first);
    expect([one.runs, two.runs]).toEqual([['alice'], []]);
    expect(await two.pay('alice', 'key-00002', { cents: 5 })).toMatchObject({ status: 202 });
    expect(two.runs).toEqual(['alice']);
  });

  it('refuse another body or path with 422, and a request without a key with 400', async () => {
    const one = await replica();
    await one.pay('alice', 'key-00001', { cents: 5 });
    expect((await one.pay('alice', 'key-00001', { cents: 6 })).status).toBe(422);
    expect((await one.pay('bob', 'key-00001', { cents: 5 })).status).toBe(422);
    expect((await one.pay('alice', undefined, { cents: 5 })).status).toBe(400);
    expect((await one.pay('alice', 'short', { cents: 5 })).status).toBe(400);
    expect(one.runs).toEqual(['alice']);
  });

  it('let repetitions wait for the first one while it runs, on its replica and on others', async () => {
    const [one, two] = [await replica(), await replica()];
    const answers = [one.pay('slow', 'key-00001', { cents: 5 })];
    await until(() => one.runs.length === 1);
    answers.push(one.pay('slow', 'key-00001', { cents: 5 }), two.pay('slow', 'key-00001', { cents: 5 }));
    const other = two.pay('slow', 'key-00001', { cents: 6 });
    const waiting = async (locks: LockService) =>
      (await locks.clients()).reduce((sum, { waiting }) => sum + waiting, 0);
    await until(async () => (await waiting(one.locks)) === 3, 20_000);
    one.end();
    const paid = { status: 201, body: { paid: 5, at: '1970-01-01T00:00:00.000Z' } };
    expect(await Promise.all(answers)).toEqual([paid, paid, paid]);
    expect((await other).status).toBe(422);
    expect([one.runs, two.runs]).toEqual([['slow'], []]);
  });

  it('answer 409 when the first one is still running after waitTime', async () => {
    const [one, two] = [await replica(), await replica()];
    const first = one.pay('slow', 'key-00001', { cents: 5 });
    await until(() => one.runs.length === 1);
    expect((await two.pay('slow', 'key-00001', { cents: 5 })).status).toBe(409);
    one.end();
    expect((await first).status).toBe(201);
    expect(two.runs).toEqual([]);
  }, 60_000);

  it('store an error below 500, and run again after any other', async () => {
    const [one, two] = [await replica(), await replica()];
    for (const { pay } of [one, one, two])
      expect(await pay('refused', 'key-00001', {})).toEqual({
        status: 409,
        body: { message: 'The account is closed', error: 'Conflict', statusCode: 409 },
      });
    expect([one.runs, two.runs]).toEqual([['refused'], []]);
    for (const { pay } of [one, two]) expect((await pay('broken', 'key-00002', {})).status).toBe(500);
    expect([one.runs, two.runs]).toEqual([['refused', 'broken'], ['broken']]);
  });
});
