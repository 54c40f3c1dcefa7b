import { Controller, UseFilters } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { ClientProxyFactory, MessagePattern, Payload, Transport } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { firstValueFrom } from 'rxjs';
import { LockBusyError } from '../../lib/engine/errors.js';
import { DistributedLock } from '../../lib/nest/distributed-lock.decorator.js';
import { LockService } from '../../lib/nest/lock.service.js';
import { LockExceptionFilter } from '../../lib/nest/lock-exception.filter.js';
import { RedisLockModule } from '../../lib/nest/redis-lock.module.js';
import { freePort } from '../support/free-port.js';

const busy = (remainingTime: number) => new LockBusyError('busy', 'order:7', remainingTime, 'somebody');

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

const answer = (error: LockBusyError, reply = new Reply()) => {
  new LockExceptionFilter().catch(error, new ExecutionContextHost([{}, reply]));
  return reply.written;
};

describe('LockExceptionFilter', () => {
  it.each([
    [1, '1'],
    [1000, '1'],
    [1001, '2'],
    [0, '1'],
  ])('rounds %i ms up to %s s', (remaining, seconds) => {
    expect(answer(busy(remaining))[0]).toBe(`Retry-After: ${seconds}`);
  });

  it('leaves Retry-After out when nothing is known', () => {
    expect(answer(busy(-1))).toEqual([423, expect.objectContaining({ statusCode: 423 })]);
  });

  it('tells the client neither the name of the lock nor who holds it', () => {
    expect(JSON.stringify(answer(busy(5)))).not.toMatch(/order:7|somebody/);
  });

  it.each(['sent', 'headersSent'] as const)('leaves an answer alone that is %s already', (flag) => {
    expect(answer(busy(5), Object.assign(new Reply(), { [flag]: true }))).toEqual([]);
  });

  it.each(['graphql', 'necord'])('passes the error on in %s', (type) => {
    const host = new ExecutionContextHost([]);
    host.setType(type);
    expect(() => new LockExceptionFilter().catch(busy(5), host)).toThrow(LockBusyError);
  });

  it("tells a socket what NestJS's own filter tells it", () => {
    const events: unknown[] = [];
    const host = new ExecutionContextHost([{ emit: (...event: unknown[]) => events.push(event) }]);
    host.setType('ws');
    expect(new LockExceptionFilter().catch(busy(5), host)).toBeUndefined();
    expect(events).toEqual([['exception', { status: 'error', message: 'Internal server error' }]]);
  });

  it("leaves a microservice's message to NestJS's own filter", async () => {
    @Controller()
    class Orders {
      @UseFilters(LockExceptionFilter)
      @MessagePattern('ship')
      @DistributedLock({ key: 'order:#<args[0]>', waitTime: 0 })
      async ship(@Payload() id: string) {
        return id;
      }
    }
    const port = await freePort();
    const transport = { transport: Transport.TCP as const, options: { host: '127.0.0.1', port } };
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ backend: 'memory' })],
      controllers: [Orders],
    }).compile();
    const app = module.createNestMicroservice({ ...transport, logger: false });
    await app.listen();
    const client = ClientProxyFactory.create(transport);
    try {
      await using _busy = await app.get(LockService).acquire('order:7');
      await expect(firstValueFrom(client.send('ship', '7'))).rejects.toEqual({
        status: 'error',
        message: 'Internal server error',
      });
      expect(await firstValueFrom(client.send('ship', '8'))).toBe('8');
    } finally {
      client.close();
      await app.close();
    }
  });
});
