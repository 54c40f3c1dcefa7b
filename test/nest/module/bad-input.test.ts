import { Injectable } from '@nestjs/common';
import { LockKeyError } from '../../../lib/engine/errors.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { startApp } from '../support/start-app.js';

type Order = { id?: unknown; items?: unknown };

@Injectable()
class Orders {
  runs = 0;

  @DistributedLock('order:#<args[0].id>')
  async ship(_order?: Order | null) {
    this.runs++;
  }

  @DistributedLock('order:#<args[9]>')
  async missing(..._orders: Order[]) {
    this.runs++;
  }

  @DistributedLock('sku:#<args[0].items[*].sku>')
  async reserve(_order: Order) {
    this.runs++;
  }

  @DistributedLock(['fine', 'order:#<args[0].id>'])
  async several(_order: Order) {
    this.runs++;
  }

  @DistributedLock((name: unknown) => name as string)
  async byFunction(_name: unknown) {
    this.runs++;
  }

  @DistributedLock((order: Order) => (order.id as { nested: string }).nested)
  async throwing(_order: Order) {
    this.runs++;
  }
}

describe('arguments that make no lock name', () => {
  let app: Awaited<ReturnType<typeof startApp>>;
  let orders: Orders;
  let asked = 0;

  beforeAll(async () => {
    app = await startApp({ providers: [Orders] });
    orders = app.get(Orders);
    const { backend } = app.locks.engine.settings;
    for (const command of ['acquire', 'acquireAll'] as const) {
      const original = backend[command].bind(backend) as (request: never) => never;
      Object.assign(backend, { [command]: (request: never) => [asked++, original(request)][1] });
    }
  });
  afterAll(() => app.close());

  it.each<[string, string, () => Promise<void>]>([
    ['Orders.ship', 'args[0] is undefined, so there is no args[0].id', () => orders.ship()],
    ['Orders.ship', 'args[0] is null, so there is no args[0].id', () => orders.ship(null)],
    ['Orders.ship', 'it is undefined', () => orders.ship({})],
    ['Orders.ship', 'it is null', () => orders.ship({ id: null })],
    ['Orders.ship', 'it is NaN', () => orders.ship({ id: Number.NaN })],
    ['Orders.ship', 'it is an object (Object)', () => orders.ship({ id: {} })],
    ['Orders.ship', 'it is a symbol', () => orders.ship({ id: Symbol('id') })],
    ['Orders.ship', 'it is an empty string', () => orders.ship({ id: '' })],
    ['Orders.ship', 'it is a string of 2048 characters', () => orders.ship({ id: 'x'.repeat(2048) })],
    ['Orders.missing', '#<args[9]>', () => orders.missing({})],
    ['Orders.reserve', '#<args[0].items[*].sku>', () => orders.reserve({ items: [] })],
    ['Orders.reserve', 'args[0].items is undefined, not an array or a Set', () => orders.reserve({})],
    ['Orders.reserve', 'it is undefined', () => orders.reserve({ items: [{ sku: 'a' }, {}] })],
    ['Orders.ship', 'the limit', () => orders.ship({ id: '%'.repeat(1000) })],
    ['Orders.several', '#<args[0].id>', () => orders.several({})],
    ['Orders.several', 'the limit', () => orders.several({ id: 'x'.repeat(1020) })],
    ['Orders.byFunction', 'list of lock names is empty', () => orders.byFunction([])],
    ['Orders.byFunction', 'undefined', () => orders.byFunction(undefined)],
    ['Orders.byFunction', 'Promise', () => orders.byFunction(Promise.resolve('a'))],
    ['Orders.byFunction', 'the lock name is empty', () => orders.byFunction('')],
    ['Orders.byFunction', 'the lock name is empty', () => orders.byFunction(['a', ''])],
    ['Orders.byFunction', '2048 bytes', () => orders.byFunction('x'.repeat(2048))],
    ['Orders.byFunction', 'unbalanced', () => orders.byFunction('{a')],
    ['Orders.byFunction', '5', () => orders.byFunction(['a', 5])],
  ])('%s: %s', async (method, reason, call) => {
    const error = await call().then(
      () => undefined as never,
      (thrown) => thrown,
    );
    expect(error).toBeInstanceOf(LockKeyError);
    expect(error.message.startsWith(`${method}: `)).toBe(true);
    expect(error.message).toContain(reason);
    expect(asked).toBe(0);
    expect(orders.runs).toBe(0);
  });

  it('passes the error of a key function on unchanged', async () => {
    await expect(orders.throwing({})).rejects.toThrow(TypeError);
    expect(asked).toBe(0);
  });

  it('asks the backend otherwise (so that the tests above show something)', async () => {
    await orders.ship({ id: 1 });
    await orders.several({ id: 1 });
    expect(asked).toBe(2);
    expect(orders.runs).toBe(2);
  });
});
