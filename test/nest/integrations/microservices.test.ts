import { Controller, type INestMicroservice } from '@nestjs/common';
import {
  type ClientProxy,
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  Payload,
  Transport,
} from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { firstValueFrom, from, lastValueFrom, Observable, toArray } from 'rxjs';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { freePort } from '../../support/servers/free-port.js';
import { until } from '../../support/until.js';
import { Section } from '../support/section.js';

const section = new Section();
const heard: string[] = [];

@Controller()
class OrdersController {
  @MessagePattern('below')
  @DistributedLock('order:#<args[0].id>')
  async below(@Payload() order: { id: string }) {
    return section.visit(order.id);
  }

  @DistributedLock('order:#<args[0].id>')
  @MessagePattern({ cmd: 'above' })
  async above(@Payload() order: { id: string }) {
    return section.visit(order.id);
  }

  @DistributedLock('order:#<args[0].id>')
  @MessagePattern('stream')
  stream(@Payload() order: { id: string }): Observable<string> {
    return from([`${order.id}.1`, `${order.id}.2`]);
  }

  @EventPattern('placed')
  @DistributedLock('order:#<args[0].id>')
  async placed(@Payload() order: { id: string }) {
    heard.push(order.id);
  }
}

describe('with @nestjs/microservices over TCP', () => {
  let app: INestMicroservice;
  let client: ClientProxy;
  beforeAll(async () => {
    const transport = { transport: Transport.TCP as const, options: { host: '127.0.0.1', port: await freePort() } };
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ backend: 'memory' })],
      controllers: [OrdersController],
    }).compile();
    app = module.createNestMicroservice({ ...transport, logger: false });
    await app.listen();
    client = ClientProxyFactory.create(transport);
  });
  afterAll(async () => {
    client.close();
    await app.close();
  });
  beforeEach(() => Object.assign(section, new Section()));

  it.each(['below', { cmd: 'above' }])('message handlers run under the lock (%j)', async (pattern) => {
    const replies = await Promise.all([1, 1, 1].map(() => firstValueFrom(client.send(pattern, { id: '7' }))));
    expect(replies).toEqual(['7', '7', '7']);
    expect(section).toMatchObject({ most: 1, entered: 3 });
  });

  it('handlers may stream', async () => {
    expect(await lastValueFrom(client.send('stream', { id: '7' }).pipe(toArray()))).toEqual(['7.1', '7.2']);
    await until(async () => !(await app.get(LockService).isLocked('order:7')));
  });

  it('event handlers wait for their turn', async () => {
    const lease = await app.get(LockService).acquire('order:7');
    client.emit('placed', { id: '7' });
    await until(async () => (await app.get(LockService).inspect('order:7')).waiting === 1);
    expect(heard).toEqual([]);
    await lease.release();
    await until(() => heard.length === 1);
  });
});
