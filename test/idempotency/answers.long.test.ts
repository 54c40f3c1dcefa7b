import {
  Body,
  ClassSerializerInterceptor,
  ConflictException,
  Controller,
  Get,
  Header,
  HttpCode,
  HttpException,
  InternalServerErrorException,
  Param,
  Post,
  Redirect,
  Req,
  Res,
  StreamableFile,
  UseInterceptors,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { LockBusyError } from 'nestjs-redis-lock';
import { Idempotent, idempotencyKey } from 'nestjs-redis-lock/idempotency';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { PLATFORMS, type Replica, type Sent, startReplica } from './replicas.js';

interface Client {
  readonly headers: Record<string, string | undefined>;
}

/** A response of Express, and a reply of Fastify. */
interface Settable {
  status(code: number): unknown;
  header(name: string, value: string): unknown;
  raw?: { end(text: string): void };
  end(text: string): void;
}

const scope = ({ headers }: Client) => headers.user ?? 'nobody';
const KEY = 'key-00001';

class Account {
  name = 'Ada';
  password = 'secret';
}

/** As if the password had `@Exclude()` of class-transformer, which knows it by the class. */
function classToPlain(object: unknown): Record<string, unknown> {
  if (typeof object !== 'object' || object === null) return object as never;
  const entries = Object.entries(object).filter(([name]) => !(object instanceof Account && name === 'password'));
  return Object.fromEntries(entries.map(([name, value]) => [name, classToPlain(value)]));
}

const none = () => undefined as never;
const transformerPackage = { classToPlain, plainToClass: none, plainToInstance: none };
const serializer = new ClassSerializerInterceptor(new Reflector(), { transformerPackage });

describe.each(PLATFORMS)('idempotent handlers on %s', (platform) => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  let runs: string[];
  let keys: string[];
  let end: (error?: Error) => void;
  const open: Replica[] = [];
  beforeEach(() => {
    runs = [];
    keys = [];
  });
  afterEach(async () => {
    end?.();
    for (const { app } of open.splice(0)) await app.close();
    await redis.client().flushall();
  });

  /** Two applications that count their runs together. */
  async function replicas(): Promise<[Replica, Replica]> {
    const ended = new Promise<void>((resolve, reject) => {
      end = (error) => (error === undefined ? resolve() : reject(error));
    });
    ended.catch(() => {});

    @Controller('pay')
    @Idempotent({ scope, keepFor: '1h', waitTime: '30s' })
    class Payments {
      @Post('slow')
      @Idempotent({ scope })
      async slow(@Body() { cents }: { cents: number }) {
        runs.push('slow');
        await ended;
        return { paid: cents, at: new Date(0) };
      }

      @Post('impatient')
      @Idempotent({ scope, waitTime: 500 })
      async impatient() {
        runs.push('impatient');
        await ended;
        return 'done';
      }

      @Post('fails/:status')
      async fails(@Param('status') status: string) {
        runs.push('fails');
        throw new HttpException({ why: 'so', at: new Date(0) }, Number(status));
      }

      @Post('conflict')
      async conflict() {
        runs.push('conflict');
        throw new ConflictException('The account is closed');
      }

      @Post('uncertain')
      @Idempotent({
        scope,
        keepErrors: (error, byDefault) => byDefault || error instanceof InternalServerErrorException,
      })
      async uncertain() {
        runs.push('uncertain');
        throw new InternalServerErrorException('The bank did not answer');
      }

      @Post('unknown')
      @Idempotent({ scope, keepErrors: () => true })
      async unknown() {
        runs.push('unknown');
        throw new RangeError('a defect');
      }

      @Post('busy')
      async busy() {
        runs.push('busy');
        throw new LockBusyError("lock 'stock:1' is busy", 'stock:1', 100, undefined);
      }

      @Post('headers')
      @Header('x-before', '1')
      @HttpCode(202)
      async headers(@Res({ passthrough: true }) response: Settable, @Req() request: object) {
        runs.push('headers');
        keys.push(idempotencyKey(request));
        response.status(207);
        response.header('location', '/payments/7');
        response.header('set-cookie', 'session=1');
        return { run: runs.length };
      }

      @Post('created')
      @HttpCode(202)
      async created() {
        runs.push('created');
      }

      @Post('moved')
      @Redirect('/elsewhere', 302)
      async moved() {
        runs.push('moved');
        return { url: `/run/${runs.length}`, statusCode: 303 };
      }

      @Post('plain')
      async plain() {
        return `run ${runs.push('plain')}`;
      }

      @Post('file')
      async file() {
        runs.push('file');
        return new StreamableFile(Buffer.from('a file'));
      }

      @Post('bigint')
      async bigint() {
        runs.push('bigint');
        return { cents: 5n };
      }

      @Post('large')
      @Idempotent({ scope, maxSize: 100 })
      async large() {
        runs.push('large');
        return { text: 'x'.repeat(200) };
      }

      @Post('itself')
      async itself(@Res({ passthrough: true }) response: Settable) {
        runs.push('itself');
        (response.raw ?? response).end('sent');
      }

      @Post('leak')
      async leak() {
        runs.push('leak');
        return { account: new Account() };
      }

      @Post('serialized')
      @UseInterceptors(serializer)
      async serialized() {
        runs.push('serialized');
        return new Account();
      }

      @UseInterceptors(serializer)
      @Idempotent({ scope })
      @Post('above')
      async above() {
        runs.push('above');
        return new Account();
      }

      @Post('optional')
      @Idempotent({ scope, required: false })
      async optional(@Req() request: object) {
        keys.push(idempotencyKey(request), idempotencyKey(request));
        return runs.push('optional');
      }

      @Get('list')
      async list() {
        return runs.push('list');
      }

      @Post(':account')
      async pay(@Param('account') account: string, @Body() { cents }: { cents: number }) {
        return { account, paid: cents, run: runs.push(account) };
      }
    }

    const start = () =>
      startReplica(platform, { connection: redis.url }, { controllers: [Payments] }, (app) => {
        app.useGlobalInterceptors(serializer);
      });
    const pair: [Replica, Replica] = [await start(), await start()];
    open.push(...pair);
    return pair;
  }

  /** The answers to the same request on one replica, on the same one again, and on the other one. */
  async function thrice(path: string, sent: Sent = {}) {
    const [one, two] = await replicas();
    const request = { key: KEY, body: {}, ...sent };
    const first = await one.send(path, request);
    return [first, await one.send(path, request), await two.send(path, request)];
  }

  const seen = (answers: readonly { status: number; body: unknown }[]) =>
    answers.map(({ status, body }) => [status, body]);

  it('run once for a request and its repetitions, on all replicas', async () => {
    const answers = await thrice('/pay/alice', { body: { cents: 5 } });
    const paid = [201, { account: 'alice', paid: 5, run: 1 }];
    expect(seen(answers)).toEqual([paid, paid, paid]);
    expect(answers.map(({ headers }) => headers['idempotency-replayed'])).toEqual([undefined, 'true', 'true']);
    expect(runs).toEqual(['alice']);
  });

  it('run again with another key, and for another scope', async () => {
    const [one] = await replicas();
    const pay = (key: string, user: string) => one.send('/pay/alice', { key, body: { cents: 5 }, headers: { user } });
    await pay(KEY, '1');
    await pay('key-00002', '1');
    expect((await pay(KEY, '2')).body).toMatchObject({ run: 3 });
    expect((await pay(KEY, '1')).body).toMatchObject({ run: 1 });
  });

  it.each([
    ['none', undefined],
    ['a short one', 'short'],
    ['a long one', 'x'.repeat(256)],
    ['one with a space', 'key 00001'],
    ['two', ['key-00001', 'key-00002']],
    ['the same one twice', ['key-00001', 'key-00001']],
    ['an unfinished string', '"key-00001'],
    ['a string with parameters', '"key-00001";a=1'],
  ])('refuse a request with this key with 400: %s', async (_, key) => {
    const [one] = await replicas();
    const { status, body } = await one.send('/pay/alice', { key, body: { cents: 5 } });
    expect([status, body]).toMatchObject([400, { message: expect.stringContaining('Idempotency-Key') }]);
    expect(runs).toEqual([]);
  });

  it('take a quoted key for the same as a bare one', async () => {
    const [one] = await replicas();
    const first = await one.send('/pay/alice', { key: '"key-\\"0001"', body: { cents: 5 } });
    expect(await one.send('/pay/alice', { key: 'key-"0001', body: { cents: 5 } })).toMatchObject({ body: first.body });
    expect(runs.length).toBe(1);
  });

  it('refuse another body, path, query, type or method under the same key with 422', async () => {
    const [one, two] = await replicas();
    const body = { cents: 5 };
    await one.send('/pay/alice', { key: KEY, body });
    const others = [
      await two.send('/pay/alice', { key: KEY, body: { cents: 6 } }),
      await two.send('/pay/bob', { key: KEY, body }),
      await two.send('/pay/alice?a=1', { key: KEY, body }),
      await two.send('/pay/alice', { key: KEY, body, headers: { 'content-type': 'application/json;charset=utf-8' } }),
      await two.send('/pay/alice', { key: KEY }),
    ];
    expect(others.map(({ status }) => status)).toEqual([422, 422, 422, 422, 422]);
    expect(runs).toEqual(['alice']);
  });

  it('let repetitions wait for the first one while it runs', async () => {
    const [one, two] = await replicas();
    const send = (replica: Replica, cents = 5) => replica.send('/pay/slow', { key: KEY, body: { cents } });
    const first = send(one);
    await until(() => runs.length === 1);
    const answers = [send(one), send(two), send(two)];
    const other = send(two, 6);
    const waiting = async () => (await one.locks.clients()).reduce((sum, client) => sum + client.waiting, 0);
    await until(async () => (await waiting()) === 4);
    end();
    const paid = { status: 201, body: { paid: 5, at: '1970-01-01T00:00:00.000Z' } };
    expect(await Promise.all([first, ...answers])).toMatchObject([paid, paid, paid, paid]);
    expect((await other).status).toBe(422);
    expect(runs).toEqual(['slow']);
  }, 30_000);

  it('run once for 200 equal requests at once', async () => {
    const pair = await replicas();
    const sent = Array.from({ length: 200 }, (_, i) =>
      pair[i % 2].send('/pay/alice', { key: KEY, body: { cents: 5 } }),
    );
    const answers = await Promise.all(sent);
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`))).toEqual(
      new Set(['201 {"account":"alice","paid":5,"run":1}']),
    );
    expect(answers.filter(({ headers }) => headers['idempotency-replayed'] === undefined).length).toBe(1);
    expect(runs).toEqual(['alice']);
  }, 60_000);

  it('answer 409 with Retry-After when the first one is still running after waitTime', async () => {
    const [one, two] = await replicas();
    const first = one.send('/pay/impatient', { key: KEY, body: {} });
    await until(() => runs.length === 1);
    const again = await two.send('/pay/impatient', { key: KEY, body: {} });
    expect(again.status).toBe(409);
    expect(Number(again.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    end();
    expect((await first).text).toBe('done');
    expect((await two.send('/pay/impatient', { key: KEY, body: {} })).text).toBe('done');
    expect(runs.length).toBe(1);
  });

  it.each([304, 400, 402, 404, 409, 422])('repeat an error with the status %d', async (status) => {
    const answers = await thrice(`/pay/fails/${status}`);
    const failed = [status, status === 304 ? '' : { why: 'so', at: '1970-01-01T00:00:00.000Z' }];
    expect(seen(answers)).toEqual([failed, failed, failed]);
    expect(answers[2].headers['idempotency-replayed']).toBe('true');
    expect(runs.length).toBe(1);
  });

  it.each([408, 423, 425, 429, 500, 503])('run again after an error with the status %d', async (status) => {
    const answers = await thrice(`/pay/fails/${status}`);
    expect(answers.map((answer) => answer.status)).toEqual([status, status, status]);
    expect(runs.length).toBe(3);
  });

  it("repeat an error of NestJS, and run again after another library's error", async () => {
    const closed = [409, { message: 'The account is closed', error: 'Conflict', statusCode: 409 }];
    expect(seen(await thrice('/pay/conflict'))).toEqual([closed, closed, closed]);
    expect((await thrice('/pay/busy', { key: 'key-00002' })).map(({ status }) => status)).toEqual([500, 500, 500]);
    expect(runs).toEqual(['conflict', 'busy', 'busy', 'busy']);
  });

  it('repeat the errors of keepErrors, and never run again after one that has no status', async () => {
    expect((await thrice('/pay/uncertain')).map(({ status }) => status)).toEqual([500, 500, 500]);
    const answers = await thrice('/pay/unknown', { key: 'key-00002' });
    expect(answers.map(({ status }) => status)).toEqual([500, 409, 409]);
    expect(runs).toEqual(['uncertain', 'unknown']);
  });

  it('give the same error to waiting requests of the process, and run again for those of another one', async () => {
    const [one, two] = await replicas();
    const first = one.send('/pay/slow', { key: KEY, body: { cents: 5 } });
    await until(() => runs.length === 1);
    const again = [one, two].map((replica) => replica.send('/pay/slow', { key: KEY, body: { cents: 5 } }));
    end(new InternalServerErrorException('no'));
    expect((await first).status).toBe(500);
    expect((await Promise.all(again)).map(({ status }) => status)).toEqual([500, 500]);
  });

  it('repeat the status and the headers that the handler has set, but no cookie', async () => {
    const answers = await thrice('/pay/headers');
    expect(answers.map(({ status, body, headers }) => [status, body, headers.location, headers['x-before']])).toEqual(
      Array.from({ length: 3 }, () => [207, { run: 1 }, '/payments/7', '1']),
    );
    expect(answers.map(({ headers }) => headers['set-cookie'])).toEqual([['session=1'], undefined, undefined]);
    const stored = await redis.client().dump((await redis.client().keys('*idempotency*'))[0]);
    expect(stored).not.toContain('session');
  });

  it('repeat empty answers, texts and redirections', async () => {
    const empty = await thrice('/pay/created');
    expect(empty.map(({ status, text }) => [status, text])).toEqual([
      [202, ''],
      [202, ''],
      [202, ''],
    ]);
    const texts = await thrice('/pay/plain', { key: 'key-00002' });
    expect(new Set(texts.map(({ text, headers }) => `${text} ${headers['content-type']}`)).size).toBe(1);
    const moved = await thrice('/pay/moved', { key: 'key-00003' });
    expect(moved.map(({ status, headers }) => [status, headers.location])).toEqual(
      Array.from({ length: 3 }, () => [303, '/run/3']),
    );
  });

  it.each([
    ['/pay/file', 200, 'a file'],
    ['/pay/large', 201, `{"text":"${'x'.repeat(200)}"}`],
    ['/pay/bigint', 500, undefined],
    ['/pay/itself', 201, 'sent'],
  ])('never run again when the answer cannot be kept: %s', async (path, status, text) => {
    const answers = await thrice(path);
    if (path === '/pay/file') expect(answers[0].text).toBe('a file');
    else expect(answers[0].status).toBe(status);
    if (text !== undefined) expect(answers[0].text).toBe(text);
    expect(answers.slice(1).map((answer) => answer.status)).toEqual([409, 409]);
    expect(answers[1].body).toMatchObject({ message: expect.stringContaining('its answer was not kept') });
    expect(runs.length).toBe(1);
  });

  it('refuse an instance of a class, whose secrets an outer serializer would not see', async () => {
    const answers = await thrice('/pay/leak');
    expect(answers.map(({ status }) => status)).toEqual([500, 409, 409]);
    expect(answers.map(({ text }) => text).join()).not.toContain('secret');
    expect(runs.length).toBe(1);
  });

  it.each(['/pay/serialized', '/pay/above'])('keep what an inner serializer makes of an instance: %s', async (path) => {
    const answers = await thrice(path);
    expect(seen(answers)).toEqual(Array.from({ length: 3 }, () => [201, { name: 'Ada' }]));
    expect(runs.length).toBe(1);
  });

  it('run each request without a key when none is required, and give it a key of its own', async () => {
    const [one] = await replicas();
    expect((await one.send('/pay/optional', { body: {} })).text).toBe('1');
    expect((await one.send('/pay/optional', { body: {} })).text).toBe('2');
    expect((await one.send('/pay/optional', { key: 'short' })).status).toBe(400);
    expect((await one.send('/pay/optional', { key: KEY })).text).toBe('3');
    expect((await one.send('/pay/optional', { key: KEY })).text).toBe('3');
    expect(keys.map((key) => keys.indexOf(key))).toEqual([0, 0, 2, 2, 4, 4]);
  });

  it('of a controller let GET requests through', async () => {
    const [one] = await replicas();
    expect((await one.send('/pay/list', { method: 'GET' })).text).toBe('1');
  });

  it('have a key for the payment provider, which differs between scopes', async () => {
    const [one, two] = await replicas();
    const send = (replica: Replica, user: string, key = KEY) =>
      replica.send('/pay/headers', { key, body: {}, headers: { user } });
    await send(one, '1');
    await redis.client().flushall();
    await send(two, '1');
    await send(one, '2');
    expect(keys.map((key) => keys.indexOf(key))).toEqual([0, 0, 2]);
    expect(keys[0]).toMatch(/^[\w-]{43}$/);
    expect(() => idempotencyKey({})).toThrow(/no @Idempotent/);
  });
});
