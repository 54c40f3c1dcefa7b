import { Injectable } from '@nestjs/common';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { Section } from '../support/section.js';
import { startApp } from '../support/start-app.js';

const section = new Section();

@Injectable()
class Stock {
  @OnEvent('order.placed')
  @DistributedLock('sku:#<args[0].sku>')
  async above(_order: { sku: string }) {
    return section.visit('above');
  }

  @DistributedLock('sku:#<args[0].sku>')
  @OnEvent('order.placed')
  @OnEvent('order.*')
  async below(_order: { sku: string }) {
    return section.visit('below');
  }

  @OnEvent('order.cancelled')
  @DistributedLock('sku:#<args[0].sku>')
  @OnEvent('order.returned')
  async between(_order: { sku: string }) {
    return section.visit('between');
  }
}

describe('with @nestjs/event-emitter', () => {
  let app: Awaited<ReturnType<typeof startApp>>;
  let emitter: EventEmitter2;
  beforeAll(async () => {
    app = await startApp({ imports: [EventEmitterModule.forRoot({ wildcard: true })], providers: [Stock] });
    emitter = app.get(EventEmitter2);
  });
  afterAll(() => app.close());
  beforeEach(() => Object.assign(section, new Section()));

  it('listeners with the decorator above or below @OnEvent run under the lock', async () => {
    await emitter.emitAsync('order.placed', { sku: 'a' });
    expect(section).toMatchObject({ most: 1, entered: 3 });
  });

  it.each(['order.cancelled', 'order.returned'])('a listener between two of them receives both (%s)', async (event) => {
    const heard = emitter.listeners(event).length;
    expect(heard).toBe(2); // its own, and the one of order.*
    await emitter.emitAsync(event, { sku: 'a' });
    expect(section).toMatchObject({ most: 1, entered: 2 });
  });

  it('events about other things run side by side', async () => {
    const open = section.shut();
    const events = Promise.all([
      emitter.emitAsync('order.cancelled', { sku: 'a' }),
      emitter.emitAsync('order.cancelled', { sku: 'b' }),
    ]);
    setTimeout(open, 50);
    await events;
    expect(section.most).toBe(2);
  });
});
