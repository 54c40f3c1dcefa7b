import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import {
  type ArgumentsHost,
  Body,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Headers,
  HttpException,
  Injectable,
  Logger,
  Next,
  Post,
  Query,
  Render,
  Res,
  Scope,
  Sse,
  type Type,
  UnprocessableEntityException,
  UseGuards,
  Version,
  VersioningType,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { Query as Field, Resolver } from '@nestjs/graphql';
import { MessagePattern } from '@nestjs/microservices';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import { DistributedLock, LockService, RedisLockModule } from 'nestjs-redis-lock';
import { Idempotent, type IdempotentOptions } from 'nestjs-redis-lock/idempotency';
import { LockTestingModule } from 'nestjs-redis-lock/testing';
import { Observable } from 'rxjs';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { PLATFORMS, type Replica, startReplica } from './replicas.js';

interface Client {
  readonly headers: Record<string, string | undefined>;
  user?: { id?: unknown };
}

const scope = ({ headers }: Client) => headers.user ?? 'nobody';
const KEY = 'key-00001';
/** Where the answer to the key of `nobody` is stored. */
const NAME = `idempotency:${createHash('sha256').update(`["nobody","${KEY}"]`).digest('base64url')}`;

@Injectable()
class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Client>();
    if (request.headers.user === 'banned') throw new ForbiddenException();
    request.user = { id: request.headers.user };
    return true;
  }
}

class Declined extends UnprocessableEntityException {}

@Catch(HttpException)
class ErrorFilter implements ExceptionFilter<HttpException> {
  catch(error: HttpException, host: ArgumentsHost) {
    const answer = { filtered: error.getResponse(), by: error.constructor.name };
    host.switchToHttp().getResponse().status(error.getStatus()).send(answer);
  }
}

describe.each(PLATFORMS)('@Idempotent in an application on %s', (platform) => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const open: Replica[] = [];
  let runs: number;
  beforeEach(() => {
    runs = 0;
  });
  afterEach(async () => {
    for (const { app } of open.splice(0)) await app.close();
    await redis.client().flushall();
  });

  async function start(
    controller: Type,
    prepare?: (app: NestExpressApplication) => void,
    providers: Parameters<typeof startReplica>[2]['providers'] = [],
  ): Promise<Replica> {
    const locks = { connection: redis.url, commandTimeout: 500 };
    const replica = await startReplica(platform, locks, { controllers: [controller], providers }, prepare);
    open.push(replica);
    return replica;
  }

  /** A controller whose handler counts its runs. */
  function counting(options: Partial<IdempotentOptions>, body: () => unknown = () => ({ run: runs })): Type {
    @Controller()
    class Counting {
      @Post('a')
      @Idempotent({ scope, ...options })
      async run() {
        runs++;
        return body();
      }
    }
    return Counting;
  }

  it.each([
    ['undefined', () => undefined],
    ['null', () => null],
    ['an empty string', () => ''],
    ['a blank string', () => '  '],
    ['NaN', () => Number.NaN],
    ['an object', () => ({ id: 7 })],
    ['a promise of undefined', async () => undefined],
  ])('answers 500 and does not run when the scope is %s', async (_, empty) => {
    const one = await start(counting({ scope: empty as never }));
    expect((await one.send('/a', { key: KEY })).status).toBe(500);
    expect(runs).toBe(0);
  });

  it('takes numbers and bigints, also as promises, for scopes', async () => {
    let whose: unknown = 7;
    const one = await start(counting({ scope: async () => whose as number }));
    for (whose of [7, 7n, '7', 8, 7]) await one.send('/a', { key: KEY });
    expect(runs).toBe(3);
  });

  it('runs after guards, which repetitions have to pass, too', async () => {
    @Controller('pay')
    @UseGuards(UserGuard)
    class Payments {
      @Post()
      @Idempotent({ scope: (request: Client) => request.user?.id as string })
      async pay() {
        return { run: ++runs };
      }
    }
    const one = await start(Payments);
    const pay = (user: string) => one.send('/pay', { key: KEY, headers: { user } });
    expect((await pay('1')).body).toEqual({ run: 1 });
    expect((await pay('1')).body).toEqual({ run: 1 });
    expect((await pay('2')).body).toEqual({ run: 2 });
    expect((await pay('banned')).status).toBe(403);
  });

  it('keeps the errors of pipes, and gives filters the same error each time', async () => {
    const parse = {
      transform: (value: unknown) => {
        if (typeof value === 'number') return value;
        runs++;
        throw new Declined({ reason: 'no number' });
      },
    };
    @Controller('pay')
    class Payments {
      @Post()
      @Idempotent({ scope })
      async pay(@Body('cents', parse) cents: number) {
        return { paid: cents };
      }
    }
    const one = await start(Payments, undefined, [{ provide: APP_FILTER, useClass: ErrorFilter }]);
    const answers = [1, 2, 3].map(() => one.send('/pay', { key: KEY, body: { cents: 'five' } }));
    const filtered = { filtered: { reason: 'no number' }, by: 'UnprocessableEntityException' };
    for (const { status, body } of await Promise.all(answers)) expect([status, body]).toEqual([422, filtered]);
    expect(runs).toBe(1);
  });

  it.each([
    ['URI', { type: VersioningType.URI, defaultVersion: '1' }, ['/api/v1/pay', {}], ['/api/v2/pay', {}]],
    [
      'HEADER',
      { type: VersioningType.HEADER, header: 'X-Version' },
      ['/api/pay', { 'x-version': '1' }],
      ['/api/pay', { 'x-version': '2' }],
    ],
    [
      'MEDIA_TYPE',
      { type: VersioningType.MEDIA_TYPE, key: 'v=' },
      ['/api/pay', { accept: 'application/json;v=1' }],
      ['/api/pay', { accept: 'application/json;v=2' }],
    ],
    [
      'CUSTOM',
      { type: VersioningType.CUSTOM, extractor: (request: unknown) => (request as Client).headers.mine ?? '' },
      ['/api/pay', { mine: '1' }],
      ['/api/pay', { mine: '2' }],
    ],
  ] as const)('works below a prefix, and tells versions apart by %s', async (_, versioning, first, second) => {
    @Controller('pay')
    class Payments {
      @Post()
      @Version(['1', '2'])
      @Idempotent({ scope })
      async pay() {
        return { run: ++runs };
      }
    }
    const one = await start(Payments, (app) => app.setGlobalPrefix('api').enableVersioning(versioning as never));
    const pay = ([path, headers]: readonly [string, object]) => one.send(path, { key: KEY, headers: { ...headers } });
    expect(await pay(first)).toMatchObject({ status: 201, body: { run: 1 } });
    expect(await pay(first)).toMatchObject({ status: 201, body: { run: 1 } });
    expect((await pay(second)).status).toBe(422);
  });

  it('works in request-scoped and inherited controllers, and beside @DistributedLock', async () => {
    class Base {
      @Post('below')
      @DistributedLock('pay:#<args[0]>')
      @Idempotent({ scope })
      async below(@Headers('user') _user: string) {
        return { run: ++runs };
      }

      @Post('above')
      @Idempotent({ scope })
      @DistributedLock('pay:#<args[0]>')
      async above(@Headers('user') _user: string) {
        return { run: ++runs };
      }
    }
    @Controller({ path: 'pay', scope: Scope.REQUEST })
    class Payments extends Base {}
    const one = await start(Payments);
    for (const [i, path] of ['/pay/below', '/pay/above'].entries()) {
      const pay = () => one.send(path, { key: `${KEY}${i}`, headers: { user: '1' } });
      expect((await pay()).body).toEqual({ run: i + 1 });
      expect((await pay()).body).toEqual({ run: i + 1 });
    }
  });

  it('awaits Observables, and keeps their last value', async () => {
    const values = () =>
      new Observable((subscriber) => {
        subscriber.next(runs);
        setTimeout(() => {
          subscriber.next({ last: runs });
          subscriber.complete();
        }, 20);
      });
    const one = await start(counting({}, values));
    expect((await one.send('/a', { key: KEY })).body).toEqual({ last: 1 });
    expect((await one.send('/a', { key: KEY })).body).toEqual({ last: 1 });
  });

  it('refuses content that is not parsed, and never gives two uploads one answer', async () => {
    const upload = (file: string) => ({
      key: KEY,
      headers: { 'content-type': 'multipart/form-data; boundary=x', 'content-digest': `sha-256=:${file}:` },
      body: `--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n${file}\r\n--x--\r\n`,
    });
    const acceptFiles = (app: NestExpressApplication) => {
      const server = app.getHttpAdapter().getInstance();
      server.addContentTypeParser?.(
        /^(multipart|application\/pdf)/,
        (_request: unknown, payload: NodeJS.ReadableStream, done: () => void) => {
          payload.resume();
          payload.on('end', done);
        },
      );
    };
    const plain = await start(counting({}), acceptFiles);
    expect((await plain.send('/a', upload('one'))).status).toBe(415);
    const pdf = { key: KEY, headers: { 'content-type': 'application/pdf' }, body: 'a document' };
    expect((await plain.send('/a', pdf)).status).toBe(415);
    expect(runs).toBe(0);
    const fingerprint = ({ headers }: Client) => headers['content-digest'] as string;
    const told = await start(counting({ fingerprint }), acceptFiles);
    expect((await told.send('/a', upload('one'))).body).toEqual({ run: 1 });
    expect((await told.send('/a', upload('one'))).body).toEqual({ run: 1 });
    expect((await told.send('/a', upload('two'))).status).toBe(422);
    expect((await told.send('/a', pdf)).status).toBe(500);
    expect(runs).toBe(1);
  });

  it('tells forms, empty objects and no content apart', async () => {
    const one = await start(counting({}));
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const send = (i: number, body?: unknown, headers?: Record<string, string>) =>
      one.send('/a', { key: `${KEY}${i}`, body, headers }).then(({ status }) => status);
    expect(await send(1, 'a=1&b[]=2', form)).toBe(201);
    expect(await send(1, 'a=1&b[]=3', form)).toBe(422);
    expect(await send(2, {})).toBe(201);
    expect(await send(2)).toBe(422);
    expect(await send(2, [])).toBe(422);
    expect(await send(2, {})).toBe(201);
  });

  it('encrypts what it stores, and never runs again because that fails', async () => {
    let works = true;
    const turned = (text: string) => {
      if (!works) throw new Error('no key');
      return Buffer.from(text).toString('base64');
    };
    const back = (text: string) => {
      if (!works) throw new Error('no key');
      return Buffer.from(text, 'base64').toString();
    };
    const one = await start(counting({ serialize: turned, deserialize: back }, () => ({ name: 'Ada' })));
    await one.send('/a', { key: KEY });
    const client = redis.client();
    const keys = await client.keys('*idempotency*');
    expect(
      JSON.stringify(await Promise.all(keys.map((key) => client.hgetall(key).catch(() => client.get(key))))),
    ).not.toContain('Ada');
    expect((await one.send('/a', { key: KEY })).body).toEqual({ name: 'Ada' });
    works = false;
    expect((await one.send('/a', { key: KEY })).status).toBe(500);
    expect((await one.send('/a', { key: 'key-00002' })).body).toEqual({ name: 'Ada' });
    works = true;
    expect((await one.send('/a', { key: 'key-00002' })).status).toBe(409);
    expect(runs).toBe(2);
  });

  const print = 'x'.repeat(43);
  it.each([
    ['nothing', ''],
    ['another text', 'a result'],
    ['no JSON', `${print}\n{`],
    ['no object', `${print}\nnull`],
    ['an interim status', `${print}\n{"status":100,"headers":{}}`],
    ['an error without a class', `${print}\n{"status":400,"headers":{},"error":{}}`],
    ['a cookie', `${print}\n{"status":200,"headers":{"Set-Cookie":"a=1"}}`],
    ['a bad name', `${print}\n{"status":200,"headers":{"a b":"1"}}`],
    ['a split header', `${print}\n{"status":200,"headers":{"a":"1\\r\\nb: 2"}}`],
    ['an object as a header', `${print}\n{"status":200,"headers":{"a":{}}}`],
  ])('answers 500 and does not run where somebody else has stored %s', async (_, text) => {
    const one = await start(counting({}));
    const options = { keepFor: '1h', serialize: String, deserialize: String } as const;
    await one.locks.singleFlight(NAME, options, async () => text);
    expect((await one.send('/a', { key: KEY })).status).toBe(500);
    expect(runs).toBe(0);
  });

  it('ends the run when its client has gone, and has the answer for the repetition', async () => {
    let end!: () => void;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const one = await start(counting({}, () => ended.then(() => ({ run: runs }))));
    const { hostname, port } = new URL(await one.url);
    const socket = connect(Number(port), hostname);
    socket.write(`POST /a HTTP/1.1\r\nHost: a\r\nIdempotency-Key: ${KEY}\r\nContent-Length: 0\r\n\r\n`);
    await until(() => runs === 1);
    socket.destroy();
    const again = one.send('/a', { key: KEY });
    end();
    expect((await again).body).toEqual({ run: 1 });
    expect(runs).toBe(1);
  });

  it('gives the first client its answer and warns when the lock was lost at the end', async () => {
    const warnings: string[] = [];
    const logger = { log() {}, error() {}, warn: (line: string) => warnings.push(line) };
    const one: Replica = await start(
      counting({}, async () => {
        await one.locks.forceRelease(NAME);
        return { run: runs };
      }),
    );
    Logger.overrideLogger(logger as never);
    try {
      expect(await one.send('/a', { key: KEY })).toMatchObject({ status: 201, body: { run: 1 } });
    } finally {
      Logger.overrideLogger(false);
    }
    expect(warnings.join('\n')).toContain('has run, but its answer may not be kept');
    expect((await one.send('/a', { key: KEY })).body).toEqual({ run: 2 });
  });

  it('answers 503 with Retry-After and does not run while Redis is away', async () => {
    const own = await startRedis();
    const locks = { connection: own.url, commandTimeout: 300, outageTimeout: 300 };
    const one = await startReplica(platform, locks, { controllers: [counting({})] });
    open.push(one);
    await own.stop();
    const { status, headers } = await one.send('/a', { key: KEY });
    expect(status).toBe(503);
    expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(runs).toBe(0);
  }, 60_000);

  it('gives the first client its answer when Redis goes away during the run, and then answers 503', async () => {
    const own = await startRedis();
    const stopped = async () => {
      await own.stop();
      return { run: runs };
    };
    const locks = { connection: own.url, commandTimeout: 300, outageTimeout: 300 };
    const one = await startReplica(platform, locks, { controllers: [counting({}, stopped)] });
    open.push(one);
    expect(await one.send('/a', { key: KEY })).toMatchObject({ status: 201, body: { run: 1 } });
    expect((await one.send('/a', { key: KEY })).status).toBe(503);
    expect(runs).toBe(1);
  }, 60_000);

  it('works with rawBody, whose spaces count', async () => {
    const replica = await startReplica(platform, { connection: redis.url }, { controllers: [counting({})] }, () => {}, {
      rawBody: true,
    });
    open.push(replica);
    const send = (body: string) =>
      replica.send('/a', { key: KEY, body, headers: { 'content-type': 'application/json' } });
    expect((await send('{"a":1}')).status).toBe(201);
    expect((await send('{"a":1}')).status).toBe(201);
    expect((await send('{"a": 1}')).status).toBe(422);
  });
});

describe('@Idempotent', () => {
  const refused = (options: object) => () => {
    class Payments {
      @Idempotent(options as IdempotentOptions)
      async pay() {}
    }
    return Payments;
  };

  it.each([
    [{}, /^@Idempotent of Payments.pay: scope is missing; .*\(request\) => request.user.id$/],
    [{ scope: 'user' }, /scope is 'user'; it must be a function/],
    [{ scope, keepFor: 0 }, /keepFor is 0: it must be at least 1 ms/],
    [{ scope, waitTime: 'soon' }, /waitTime is 'soon'/],
    [{ scope, header: 'Idempotency Key' }, /header is 'Idempotency Key'/],
    [{ scope, serialize: String }, /serialize and deserialize need each other/],
    [{ scope, keepfor: '1h' }, /did you mean 'keepFor'/],
  ])('is refused where the class is defined, with the options %j', (options, message) => {
    expect(refused(options)).toThrow(message);
  });

  it('is refused twice on one handler', () => {
    expect(() => {
      class Payments {
        @Idempotent({ scope })
        @Idempotent({ scope })
        async pay() {}
      }
      return Payments;
    }).toThrow(/it is there twice/);
  });

  @Controller('a')
  class Streaming {
    @Sse()
    @Idempotent({ scope })
    stream() {}
  }
  @Controller('a')
  class Rendering {
    @Idempotent({ scope })
    @Render('page')
    @Get()
    page() {}
  }
  @Controller('a')
  class Responding {
    @Post()
    @Idempotent({ scope })
    respond(@Query('a') _a: string, @Res() _response: unknown) {}
  }
  @Controller('a')
  @Idempotent({ scope })
  class PassingOn {
    @Post()
    next(@Next() _next: unknown) {}
  }
  @Controller()
  class Messages {
    @MessagePattern('pay')
    @Idempotent({ scope })
    pay() {}
  }
  @Controller()
  @Idempotent({ scope })
  class AllMessages {
    @MessagePattern('pay')
    pay() {}
  }
  @Resolver()
  class Fields {
    @Field(() => String)
    @Idempotent({ scope })
    pay() {}
  }
  @Resolver()
  @Idempotent({ scope })
  class AllFields {
    @Field(() => String)
    pay() {}
  }
  @Injectable()
  class Service {
    @Idempotent({ scope })
    pay() {}
  }

  const NO_HTTP = /only they have a request header with a key, .* use @SingleFlight with the key among its arguments/;
  it.each<[Type, 'controllers' | 'providers', RegExp]>([
    [Streaming, 'controllers', /Streaming.stream: .*a stream of answers/],
    [Rendering, 'controllers', /Rendering.page: .*@Render/],
    [Responding, 'controllers', /Responding.respond: .*passthrough: true/],
    [PassingOn, 'controllers', /PassingOn.next: .*passthrough: true/],
    [Messages, 'controllers', NO_HTTP],
    [AllMessages, 'controllers', NO_HTTP],
    [Fields, 'providers', NO_HTTP],
    [AllFields, 'providers', NO_HTTP],
    [Service, 'providers', NO_HTTP],
  ])('is refused at the start on %p', async (type, kind, message) => {
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ backend: 'memory' })],
      [kind]: [type],
    }).compile();
    await expect(module.createNestApplication({ logger: false }).init()).rejects.toThrow(message);
    await module.close().catch(() => {});
  });

  it('works with LockTestingModule, and with a named service', async () => {
    let runs = 0;
    @Controller('pay')
    class Payments {
      @Post()
      @Idempotent({ scope, service: 'billing' })
      async pay() {
        return { run: ++runs };
      }
    }
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot({ name: 'billing' })],
      controllers: [Payments],
    }).compile();
    const app = module.createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    const pay = async () =>
      (await fetch(`${await app.getUrl()}/pay`, { method: 'POST', headers: { 'idempotency-key': KEY } })).json();
    expect([await pay(), await pay()]).toEqual([{ run: 1 }, { run: 1 }]);
    await app.close();
  });

  it('describes the header and the answers to @nestjs/swagger', async () => {
    @Controller('pay')
    @Idempotent({ scope, header: 'X-Request-Id' })
    class Payments {
      @Post()
      @Idempotent({ scope })
      async pay() {}

      @Post('all')
      async all() {}

      @Get()
      async list() {}
    }
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot()],
      controllers: [Payments],
    }).compile();
    const app = module.createNestApplication({ logger: false });
    const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    const shown = (path: string, method: 'get' | 'post') => {
      const { parameters, responses } = paths[path][method]!;
      return [parameters?.map((one) => 'name' in one && `${one.in} ${one.name}`), Object.keys(responses ?? {})];
    };
    expect(shown('/pay', 'post')).toEqual([['header Idempotency-Key'], ['201', '400', '409', '422']]);
    expect(shown('/pay/all', 'post')).toEqual([['header X-Request-Id'], ['201', '400', '409', '422']]);
    expect(shown('/pay', 'get')).toEqual([[], ['200']]);
    expect(app.get(LockService)).toBeInstanceOf(LockService);
    await app.close();
  });
});
