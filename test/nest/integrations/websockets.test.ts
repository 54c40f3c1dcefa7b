import { type INestApplication, UseFilters, type WebSocketAdapter } from '@nestjs/common';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { from, Observable } from 'rxjs';
import { io, type Socket } from 'socket.io-client';
import { WebSocket } from 'ws';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { LockExceptionFilter } from '../../../lib/nest/lock-exception.filter.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { until } from '../../support/until.js';
import { Section } from '../support/section.js';

const section = new Section();

@WebSocketGateway()
@UseFilters(LockExceptionFilter)
class OrdersGateway {
  @SubscribeMessage('below')
  @DistributedLock('order:#<args[0].id>')
  async below(@MessageBody() order: { id: string }) {
    return section.visit(order.id);
  }

  @DistributedLock('order:#<args[0].id>')
  @SubscribeMessage('above')
  async above(@MessageBody() order: { id: string }) {
    return section.visit(order.id);
  }

  @SubscribeMessage('stream')
  @DistributedLock('order:#<args[0].id>')
  stream(@MessageBody() order: { id: string }): Observable<{ event: string; data: string }> {
    return from([`${order.id}.1`, `${order.id}.2`].map((data) => ({ event: 'part', data })));
  }

  @SubscribeMessage('impatient')
  @DistributedLock({ key: 'order:#<args[0].id>', waitTime: 0 })
  async impatient(@MessageBody() order: { id: string }) {
    return order.id;
  }
}

const LOCKED = {
  status: 'error',
  code: 'LOCKED',
  message: 'Somebody else is working on this right now, try again later',
};

async function startApp(adapter?: (app: INestApplication) => WebSocketAdapter): Promise<INestApplication> {
  const module = await Test.createTestingModule({
    imports: [RedisLockModule.forRoot({ backend: 'memory' })],
    providers: [OrdersGateway],
  }).compile();
  const app = module.createNestApplication({ logger: false, forceCloseConnections: true });
  if (adapter !== undefined) app.useWebSocketAdapter(adapter(app));
  return app.listen(0, '127.0.0.1').then(() => app);
}

describe('with @nestjs/websockets over Socket.IO', () => {
  let app: INestApplication;
  let client: Socket;
  beforeAll(async () => {
    app = await startApp();
    client = io(await app.getUrl(), { transports: ['websocket'] });
    await until(() => client.connected);
  });
  afterAll(async () => {
    client.disconnect();
    await app.close();
  });
  beforeEach(() => Object.assign(section, new Section()));

  it.each(['below', 'above'])('message handlers with the decorator %s theirs run under the lock', async (event) => {
    const replies = await Promise.all([1, 1, 1].map(() => client.timeout(30_000).emitWithAck(event, { id: '7' })));
    expect(replies).toEqual(['7', '7', '7']);
    expect(section).toMatchObject({ most: 1, entered: 3 });
  });

  it('handlers may stream', async () => {
    const parts: string[] = [];
    client.on('part', (part: string) => parts.push(part));
    client.emit('stream', { id: '7' });
    await until(() => parts.length === 2);
    expect(parts).toEqual(['7.1', '7.2']);
    await until(async () => !(await app.get(LockService).isLocked('order:7')));
  });

  it('a busy lock is the event `exception`, which LockExceptionFilter sends, and which names neither lock nor holder', async () => {
    await using held = await app.get(LockService).acquire('order:7');
    const told = new Promise((resolve) => client.once('exception', resolve));
    client.emit('impatient', { id: '7' });
    const message = await told;
    expect(message).toEqual(LOCKED);
    for (const secret of ['order:7', held.owner]) expect(JSON.stringify(message)).not.toContain(secret);
  });
});

describe('with @nestjs/websockets over plain WebSockets', () => {
  let app: INestApplication;
  let client: WebSocket;
  beforeAll(async () => {
    app = await startApp((application) => new WsAdapter(application));
    client = new WebSocket((await app.getUrl()).replace('http', 'ws'));
    await new Promise((resolve) => client.once('open', resolve));
  });
  afterAll(async () => {
    client.close();
    await app.close();
  });
  beforeEach(() => Object.assign(section, new Section()));

  const send = (event: string) => client.send(JSON.stringify({ event, data: { id: '7' } }));
  const answer = () => new Promise((resolve) => client.once('message', (data) => resolve(JSON.parse(String(data)))));

  it('message handlers run under the lock', async () => {
    const answers: unknown[] = [];
    const hear = (data: unknown) => answers.push(JSON.parse(String(data)));
    client.on('message', hear);
    for (const event of ['below', 'above', 'below']) send(event);
    await until(() => answers.length === 3);
    client.off('message', hear);
    expect(answers).toEqual(['7', '7', '7']);
    expect(section).toMatchObject({ most: 1, entered: 3 });
  });

  it('a busy lock is the event `exception`', async () => {
    await using held = await app.get(LockService).acquire('order:7');
    const told = answer();
    send('impatient');
    expect(await told).toEqual({ event: 'exception', data: LOCKED });
    held.assertHeld();
  });
});
