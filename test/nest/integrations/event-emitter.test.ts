import { Injectable } from '@nestjs/common';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { SingleFlight } from '../../../lib/nest/decorator/single-flight.decorator.js';
import { until } from '../../support/until.js';
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

/** Emits an event inside a lock, and does not wait for the listeners, as `emit` does not. */
@Injectable()
class Shop {
  runs = 0;

  constructor(private readonly emitter: EventEmitter2) {}

  @DistributedLock('sku:#<args[0].sku>')
  async sell(order: { sku: string }, event: string) {
    this.emitter.emit(event, order);
    return section.visit();
  }

  @SingleFlight({ key: 'prices', reentry: false })
  async prices() {
    return ++this.runs;
  }
}

@Injectable()
class Listeners {
  @OnEvent('sold.inherits')
  @DistributedLock('sku:#<args[0].sku>')
  async inherits(_order: { sku: string }) {
    return section.visit();
  }

  @OnEvent('sold.stranger')
  @DistributedLock({ key: 'sku:#<args[0].sku>', reentry: false })
  async stranger(_order: { sku: string }) {
    return section.visit();
  }
}

describe('a listener of an event that is emitted inside its lock', () => {
  beforeEach(() => Object.assign(section, new Section()));

  const sell = async (event: string) => {
    const options = { backend: 'memory', shutdownTimeout: 10 } as const;
    const app = await startApp({ imports: [EventEmitterModule.forRoot()], providers: [Shop, Listeners] }, options);
    await app.get(Shop).sell({ sku: 'a' }, event);
    await until(() => section.entered === 2 && !section.occupied);
    await app.close();
    return section.most;
  };

  it('runs beside the method that emits it', async () => {
    expect(await sell('sold.inherits')).toBe(2);
  });

  it('waits for that method with reentry: false', async () => {
    expect(await sell('sold.stranger')).toBe(1);
  });

  it('may be a single flight, which joins the run that it was started in', async () => {
    const app = await startApp({ imports: [EventEmitterModule.forRoot()], providers: [Shop] });
    const shop = app.get(Shop);
    const results: unknown[] = [];
    await app.locks.singleFlight('prices', async () => {
      void shop.prices().then((result) => results.push(result));
      return 7;
    });
    await until(() => results.length === 1);
    expect([results, shop.runs]).toEqual([[7], 0]);
    await app.close();
  });
});
