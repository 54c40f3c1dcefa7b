import { inspect } from 'node:util';
import { Controller, Logger } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { ClientProxyFactory, EventPattern, MessagePattern, Payload, Transport } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { firstValueFrom } from 'rxjs';
import {
  LockAbortedError,
  LockBusyError,
  LockConfigurationError,
  LockDeadlockError,
  LockKeyError,
  LockSupersededError,
  LockUnavailableError,
} from '../../../lib/engine/errors.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { LockExceptionFilter, type LockExceptionFilterOptions } from '../../../lib/nest/lock-exception.filter.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { freePort } from '../../support/servers/free-port.js';
import { until } from '../../support/until.js';

const busy = (remainingTime: number, fixedLease = false) =>
  new LockBusyError("The lock 'order:7' is busy; held by somebody", 'order:7', remainingTime, 'somebody', fixedLease);

const LOCKED = {
  status: 'error',
  code: 'LOCKED',
  message: 'Somebody else is working on this right now, try again later',
};

/** What Express's response and Fastify's reply have in common. */
class Reply {
  sent = false;
  headersSent = false;
  readonly written: unknown[] = [];
  header(name: string, value: string) {
    this.written.push(`${name}: ${value}`);
    return this;
  }
  status(code: number) {
    this.written.push(code);
    return this;
  }
  send(body: unknown) {
    this.written.push(body);
  }
}

const away = () => new LockUnavailableError("The lock 'order:7': redis 10.0.0.1:6379/0 does not answer", 'order:7');

const answer = (
  error: LockAbortedError | LockBusyError | LockDeadlockError | LockKeyError | LockUnavailableError,
  reply = new Reply(),
  options?: LockExceptionFilterOptions,
) => {
  new LockExceptionFilter(options).catch(error, new ExecutionContextHost([{}, reply]));
  return reply.written;
};

describe('LockExceptionFilter', () => {
  it('answers a request from which no lock name can be made with 400, and does not repeat the name', () => {
    const error = new LockKeyError(
      "StockController.sell: args[0].sku is undefined in the key 'sku:#<args[0].sku>'",
      '',
    );
    const body = { message: 'A value that this request needs is missing or invalid', error: 'Bad Request' };
    expect(answer(error)).toEqual([400, { statusCode: 400, ...body }]);
    expect(answer(error, undefined, { badKey: 422 })).toEqual([422, { statusCode: 422, ...body }]);
    expect(() => new LockExceptionFilter({ badKey: 200 })).toThrow(/badKey is 200/);
  });

  it('logs one line for all requests that an outage refuses', () => {
    const lines: string[] = [];
    Logger.overrideLogger({ log: () => {}, warn: () => {}, error: (line) => void lines.push(line) });
    const cause = new Error('redis 10.0.0.2:6379/0 does not answer');
    for (let n = 0; n < 297; n++)
      answer(new LockUnavailableError(`The lock 'order:${n}': ${cause.message}`, `order:${n}`, { cause }));
    Logger.overrideLogger(['fatal', 'error', 'warn', 'log']);
    expect(lines).toEqual(["The lock 'order:0': redis 10.0.0.2:6379/0 does not answer"]);
  });

  it('answers a call that a later one has superseded with 409, which need not try again', () => {
    const error = new LockSupersededError('The call was superseded', 'order:7', 5_000, 'somebody', true);
    const body = { message: 'A later request is served in place of this one', error: 'Conflict' };
    expect(answer(error)).toEqual([409, { statusCode: 409, ...body }]);
    expect(answer(error, undefined, { busy: 400, superseded: 410 })).toEqual([410, { statusCode: 410, ...body }]);
    expect(() => new LockExceptionFilter({ superseded: 200 })).toThrow(/superseded is 200/);
  });

  it('answers with 500 when something else is stored under the name, which is not the fault of the client', () => {
    const cause = new Error('lock:order is not a lock but a string');
    const error = new LockKeyError("The lock 'order' cannot be used", 'order', { cause });
    expect(answer(error)).toEqual([
      500,
      { statusCode: 500, message: 'Internal server error', error: 'Internal Server Error' },
    ]);
  });

  it.each([
    [1, '1'],
    [1000, '1'],
    [1001, '2'],
    [0, '1'],
  ])('rounds %i ms of a fixed lease up to %s s', (remaining, seconds) => {
    expect(answer(busy(remaining, true))[0]).toBe(`Retry-After: ${seconds}`);
  });

  it.each([
    ['of the watchdog, which says nothing of the body', 29_000],
    ['of another process', 600_000],
    ['without a limit', -1],
  ])('says 1, 2 or 3 s for a lease %s', (_, remaining) => {
    const seen = new Set(Array.from({ length: 200 }, () => answer(busy(remaining))[0]));
    expect([...seen].sort()).toEqual(['Retry-After: 1', 'Retry-After: 2', 'Retry-After: 3']);
  });

  it('knows the end of a fixed lease from the error about a lock that is held in this process', async () => {
    const locks = createLockService({ backend: 'memory', logger: { warn: () => {}, error: () => {} } });
    for (const type of ['reentrant', 'fair'] as const) {
      for (const leaseTime of ['20s', undefined] as const) {
        await using _held = await locks.acquire('order:7', { type, leaseTime });
        const refusal = await locks.acquire('order:7', { type, waitTime: 0 }).catch((error) => error);
        expect(refusal).toBeInstanceOf(LockBusyError);
        expect(refusal.fixedLease).toBe(leaseTime !== undefined);
      }
    }
    await locks.close();
  });

  it('answers in the same way if a deadlock was ended by refusing the handler its lock', () => {
    const cycle = [{ owner: 'somebody', holds: 'stock:1', waitsFor: 'order:7' }];
    const written = answer(new LockDeadlockError("The lock 'order:7' …: somebody", 'order:7', cycle));
    expect(written).toMatchObject([expect.stringMatching(/^Retry-After: [123]$/), 423, { statusCode: 423 }]);
    expect(JSON.stringify(written)).not.toMatch(/order:7|somebody/);
  });

  it('answers 503 with Retry-After when Redis does not answer, and names neither the lock nor the Redis', () => {
    const written = answer(away());
    expect(written).toEqual([
      expect.stringMatching(/^Retry-After: [123]$/),
      503,
      {
        statusCode: 503,
        error: 'Service Unavailable',
        message: 'This cannot be done right now, try again later',
      },
    ]);
  });

  it.each([
    ['the application shuts down', { byShutdown: true }],
    ['the call was ended by its own signal', { cause: undefined }],
  ])('answers 503 with Retry-After when %s, because nothing has run', (_, options) => {
    const written = answer(new LockAbortedError("Waiting for the lock 'order:7' has ended", 'order:7', options));
    expect(written).toMatchObject([expect.stringMatching(/^Retry-After: [123]$/), 503, { statusCode: 503 }]);
    expect(JSON.stringify(written)).not.toMatch(/order:7/);
  });

  it('answers with 500 when a body gave up because it was told to stop', () => {
    const written = answer(
      new LockAbortedError("Shutdown stopped waiting for the body that holds 'order:7'", 'order:7'),
    );
    expect(written).toMatchObject([500, { statusCode: 500, message: 'Internal server error' }]);
  });

  it('answers with the statuses that it was given', () => {
    const options = { busy: 409, unavailable: 500 };
    expect(answer(busy(5), new Reply(), options).slice(1)).toMatchObject([409, { statusCode: 409 }]);
    expect(answer(away(), new Reply(), options).slice(1)).toMatchObject([500, { statusCode: 500 }]);
    expect(() => new LockExceptionFilter({ busy: 200 })).toThrow(LockConfigurationError);
  });

  it('tells the client neither the name of the lock nor who holds it', () => {
    expect(JSON.stringify(answer(busy(5)))).not.toMatch(/order:7|somebody/);
  });

  it.each(['sent', 'headersSent'] as const)('does not touch an answer that is %s already', (flag) => {
    expect(answer(busy(5), Object.assign(new Reply(), { [flag]: true }))).toEqual([]);
  });

  it.each(['graphql', 'necord'])('throws an error in %s that reveals no more', (type) => {
    const host = new ExecutionContextHost([]);
    host.setType(type);
    const error = (() => {
      try {
        return new LockExceptionFilter().catch(busy(5), host);
      } catch (thrown) {
        return thrown as Error;
      }
    })();
    expect(error).toMatchObject({ message: LOCKED.message, extensions: { code: 'LOCKED' } });
    expect(inspect(error, { showHidden: true, depth: 9 })).not.toMatch(/order:7|somebody/);
  });

  it('notifies a socket by the event for exceptions', () => {
    const events: unknown[] = [];
    const host = new ExecutionContextHost([{ emit: (...event: unknown[]) => events.push(event) }]);
    host.setType('ws');
    expect(new LockExceptionFilter().catch(busy(5), host)).toBeUndefined();
    expect(events).toEqual([['exception', LOCKED]]);
  });

  it('as APP_FILTER answers a microservice’s message with its own error, and survives an event', async () => {
    const heard: string[] = [];
    @Controller()
    class Orders {
      @EventPattern('placed')
      @DistributedLock({ key: 'order:#<args[0]>', waitTime: 0 })
      async placed(@Payload() id: string) {
        heard.push(id);
      }

      @MessagePattern('ship')
      @DistributedLock({ key: 'order:#<args[0]>', waitTime: 0 })
      async ship(@Payload() id: string) {
        return id;
      }
    }
    const said: string[] = [];
    const silent = { log: () => {}, error: () => {}, warn: () => {} };
    const port = await freePort();
    const transport = { transport: Transport.TCP as const, options: { host: '127.0.0.1', port } };
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ backend: 'memory' })],
      controllers: [Orders],
      providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }],
    }).compile();
    const app = module.createNestMicroservice({ ...transport, logger: { ...silent, warn: (line) => said.push(line) } });
    await app.listen();
    const client = ClientProxyFactory.create(transport);
    try {
      await using _busy = await app.get(LockService).acquire('order:7');
      await expect(firstValueFrom(client.send('ship', '7'))).rejects.toEqual(LOCKED);
      expect(await firstValueFrom(client.send('ship', '8'))).toBe('8');
      client.emit('placed', '7');
      await until(() => said.length === 2);
      expect(said).toEqual(Array(2).fill(expect.stringContaining("The lock 'order:7' is busy")));
      client.emit('placed', '8');
      await until(() => heard.length === 1);
      expect(heard).toEqual(['8']);
    } finally {
      client.close();
      await app.close();
    }
  });
});
