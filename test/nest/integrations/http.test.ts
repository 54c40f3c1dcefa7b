import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import {
  type CanActivate,
  Controller,
  type ExceptionFilter,
  ForbiddenException,
  Get,
  HttpCode,
  type INestApplication,
  Injectable,
  type MessageEvent,
  NotFoundException,
  Param,
  ParseIntPipe,
  Post,
  type Provider,
  Res,
  Sse,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { interval, map, Observable, of } from 'rxjs';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { LockExceptionFilter } from '../../../lib/nest/lock-exception.filter.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { until } from '../../support/until.js';
import { Section } from '../support/section.js';

const section = new Section();
let lockedInGuard: boolean | undefined;

@Injectable()
class Guard implements CanActivate {
  constructor(private readonly locks: LockService) {}
  async canActivate() {
    lockedInGuard = await this.locks.isLocked('order:7');
    return true;
  }
}

@Injectable()
class Forbid implements CanActivate {
  canActivate(): boolean {
    throw new ForbiddenException();
  }
}

@Controller('orders')
class OrdersController {
  @Get('below/:id')
  @HttpCode(202)
  @DistributedLock('order:#<args[0]>')
  async below(@Param('id', ParseIntPipe) id: number) {
    return section.visit({ id });
  }

  @DistributedLock('order:#<args[0]>')
  @Get('above/:id')
  @HttpCode(202)
  async above(@Param('id', ParseIntPipe) id: number) {
    return section.visit({ id });
  }

  @UseGuards(Guard)
  @DistributedLock('order:#<args[0]>')
  @Get('guarded/:id')
  async guarded(@Param('id') id: string) {
    return { id };
  }

  @DistributedLock('order:#<args[0]>')
  @UseGuards(Forbid)
  @Get('forbidden/:id')
  async forbidden(@Param('id') _id: string) {
    section.enter();
  }

  @Get('missing/:id')
  @UseFilters(LockExceptionFilter)
  @DistributedLock('order:#<args[0]>')
  async missing(@Param('id') id: string) {
    throw new NotFoundException(`no order ${id}`);
  }

  @Get('observable/:id')
  @DistributedLock('order:#<args[0]>')
  observable(@Param('id') id: string): Observable<object> {
    return of({ id });
  }

  @Sse('stream/:id')
  @DistributedLock('order:#<args[0]>')
  stream(@Param('id') id: string): Observable<MessageEvent> {
    return interval(5).pipe(map((tick) => ({ data: { id, tick } })));
  }

  @Post('skip/:id')
  @DistributedLock({ key: 'order:#<args[0]>', onBusy: 'skip' })
  skip(@Param('id') id: string): Observable<object | undefined> {
    return of({ id });
  }

  @Get('busy/:id')
  @DistributedLock({ key: 'order:#<args[0]>', waitTime: 0 })
  async busy(@Param('id') id: string) {
    return { id };
  }

  @Get('filtered/:id')
  @UseFilters(LockExceptionFilter)
  @DistributedLock({ key: 'order:#<args[0]>', waitTime: 0 })
  async filtered(@Param('id') id: string) {
    return { id };
  }
}

describe('handlers of a controller, over HTTP', () => {
  let app: INestApplication;
  let locks: LockService;
  let url: string;

  const start = async (providers: Provider[] = [], filters: ExceptionFilter[] = []) => {
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ backend: 'memory' })],
      controllers: [OrdersController],
      providers,
    }).compile();
    app = module.createNestApplication({ logger: false, forceCloseConnections: true });
    app.useGlobalFilters(...filters);
    await app.listen(0, '127.0.0.1');
    url = `${await app.getUrl()}/orders`;
    locks = app.get(LockService);
  };

  beforeEach(async () => {
    Object.assign(section, new Section());
    await start();
  });
  afterEach(() => app.close());

  it.each(['below', 'above'])('run under the lock when the route decorators stand %s', async (route) => {
    const replies = await Promise.all([1, 1, 1].map(() => fetch(`${url}/${route}/7`)));
    expect(replies.map(({ status }) => status)).toEqual([202, 202, 202]);
    expect(await replies[0].json()).toEqual({ id: 7 });
    expect(section).toMatchObject({ most: 1, entered: 3 });
  });

  it('run inside guards and pipes: neither holds the lock', async () => {
    expect((await fetch(`${url}/guarded/7`)).status).toBe(200);
    expect(lockedInGuard).toBe(false);
    await using _busy = await locks.acquire('order:7');
    expect((await fetch(`${url}/forbidden/7`)).status).toBe(403);
    expect((await fetch(`${url}/below/x`)).status).toBe(400);
    expect(section.entered).toBe(0);
  });

  it('keep the status of the errors they throw', async () => {
    const reply = await fetch(`${url}/missing/7`);
    expect(reply.status).toBe(404);
    expect(await reply.json()).toEqual({ statusCode: 404, message: 'no order 7', error: 'Not Found' });
  });

  it('may return Observables', async () => {
    expect(await (await fetch(`${url}/observable/7`)).json()).toEqual({ id: '7' });
  });

  it('hold the lock while they stream, until the client goes away', async () => {
    const client = new AbortController();
    const reply = await fetch(`${url}/stream/7`, { signal: client.signal });
    const events = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
    await until(async () => (await events.read()).value?.includes('{"id":"7","tick":0}'));
    expect(await locks.isLocked('order:7')).toBe(true);
    client.abort();
    await until(async () => !(await locks.isLocked('order:7')));
  });

  describe('while the lock is busy', () => {
    const acquire = () => locks.acquire('order:7', { leaseTime: '20s' });

    it("answer with nothing for onBusy: 'skip'", async () => {
      await using _busy = await acquire();
      const reply = await fetch(`${url}/skip/7`, { method: 'POST' });
      expect([reply.status, await reply.text()]).toEqual([201, '']);
    });

    it('answer 500 without the filter', async () => {
      await using _busy = await acquire();
      expect((await fetch(`${url}/busy/7`)).status).toBe(500);
    });

    const expectLocked = async (route: string) => {
      await using _busy = await acquire();
      const reply = await fetch(`${url}/${route}/7`);
      expect(reply.status).toBe(423);
      expect(await reply.json()).toEqual({
        statusCode: 423,
        message: expect.stringContaining('try again'),
        error: 'Locked',
      });
      expect(Number(reply.headers.get('Retry-After'))).toBeGreaterThan(0);
      expect(Number(reply.headers.get('Retry-After'))).toBeLessThanOrEqual(20);
    };

    it('answer 423 with Retry-After by LockExceptionFilter on the handler', () => expectLocked('filtered'));

    it('answer 423 by LockExceptionFilter as APP_FILTER', async () => {
      await app.close();
      await start([{ provide: APP_FILTER, useClass: LockExceptionFilter }]);
      await expectLocked('busy');
      expect((await fetch(`${url}/missing/7`)).status).toBe(404);
    });

    it('answer 423 by useGlobalFilters(new LockExceptionFilter())', async () => {
      await app.close();
      await start([], [new LockExceptionFilter()]);
      await expectLocked('busy');
    });
  });
});

describe.each([
  ['Express', new ExpressAdapter()],
  ['Fastify', new FastifyAdapter()],
] as const)('an answer of %s that has begun when a lock stays busy', (_, adapter) => {
  @Controller()
  class ExportController {
    @Get('export')
    @UseFilters(LockExceptionFilter)
    async export(@Res() response: ServerResponse & { readonly raw?: ServerResponse }) {
      (response.raw ?? response).write('the first lines');
      await this.rest();
    }

    @DistributedLock({ key: 'export', waitTime: 0 })
    async rest() {}
  }

  it('is ended by LockExceptionFilter, as by the filter of NestJS', async () => {
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ backend: 'memory', shutdownTimeout: 10 })],
      controllers: [ExportController],
    }).compile();
    const app = module.createNestApplication<INestApplication>(adapter, { logger: false, forceCloseConnections: true });
    await app.listen(0, '127.0.0.1');
    await app.get(LockService).acquire('export');
    const reply = await fetch(`${await app.getUrl()}/export`, { signal: AbortSignal.timeout(10_000) });
    expect(await reply.text()).toBe('the first lines');
    await app.close();
  });
});

describe('a client that has gone', () => {
  const clientGone = new AsyncLocalStorage<AbortSignal>();
  const run: string[] = [];

  @Controller('payments')
  class PaymentsController {
    @Post('patient/:id')
    @DistributedLock('order:#<args[0]>')
    async patient(@Param('id') id: string) {
      run.push(`patient ${id}`);
    }

    @Post(':id')
    @DistributedLock({ key: 'order:#<args[0]>', waitTime: '1m', signal: () => clientGone.getStore() })
    async pay(@Param('id') id: string) {
      run.push(`pay ${id}`);
    }
  }

  let app: INestApplication;
  let locks: LockService;
  const impatient = (path: string) =>
    fetch(`${url}/payments/${path}`, { method: 'POST', signal: AbortSignal.timeout(300) }).catch((error) => error.name);
  let url: string;
  beforeEach(async () => {
    run.length = 0;
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ backend: 'memory' })],
      controllers: [PaymentsController],
      providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }],
    }).compile();
    app = module.createNestApplication({ logger: false, forceCloseConnections: true });
    app.use((_request: unknown, response: ServerResponse, next: () => void) => {
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      clientGone.run(gone.signal, next);
    });
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
    locks = app.get(LockService);
  });
  afterEach(() => app.close());

  it('ends the wait, and the method does not run', async () => {
    const lease = await locks.acquire('order:7');
    expect(await Promise.all([1, 2, 3, 4, 5].map(() => impatient('7')))).toEqual(Array(5).fill('TimeoutError'));
    await until(async () => (await locks.inspect('order:7')).waiting === 0);
    await lease.release();
    expect(await locks.isLocked('order:7')).toBe(false);
    expect(run).toEqual([]);
    expect((await fetch(`${url}/payments/7`, { method: 'POST' })).status).toBe(201);
    expect(run).toEqual(['pay 7']);
  });

  it('is waited for in vain without the option', async () => {
    const lease = await locks.acquire('order:7');
    expect(await impatient('patient/7')).toBe('TimeoutError');
    await lease.release();
    await until(() => run.length === 1);
  });
});
