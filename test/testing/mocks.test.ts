import { jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { firstValueFrom, Observable, of, toArray } from 'rxjs';
import { attachLockService, DistributedLock, LockBusyError, LockService } from '../../lib/index.js';

@Injectable()
class Orders {
  @DistributedLock('order')
  async ship(result: unknown = 'shipped') {
    return result;
  }

  @DistributedLock((ids: string[]) => ids.map((id) => `order:${id}`))
  async shipAll(ids: string[]) {
    return ids;
  }

  @DistributedLock(['order'])
  async listed() {
    return 'listed';
  }

  @DistributedLock({ key: 'order', onBusy: () => 'busy' })
  async tryToShip() {
    return 'shipped';
  }

  @DistributedLock('feed')
  feed(): Observable<number> {
    return of(1, 2);
  }

  @DistributedLock('pages')
  async *pages() {
    yield* [1, 2];
  }

  @DistributedLock('broken')
  async fail() {
    throw new RangeError('mine');
  }
}

const withMock = (mock: object) => attachLockService(new Orders(), mock as LockService);
const last = (args: unknown[]) => args.at(-1) as (lease?: object) => unknown;

/**
 * A mock as `createMock<LockService>()` makes one: it has every property, and each is a function that returns nothing.
 */
function inventing(own: object = {}): object {
  const invented = new Map<PropertyKey, unknown>();
  return new Proxy(own, {
    get(target, property) {
      if (property in target) return Reflect.get(target, property);
      if (property === 'then') return undefined;
      if (!invented.has(property)) invented.set(property, () => undefined);
      return invented.get(property);
    },
  });
}

/** A mock of each kind, with what was acquired from it and released. */
const MOCKS: [string, (events: string[]) => object][] = [
  [
    'withLock',
    (events) => ({
      async withLock(name: string, ...rest: unknown[]) {
        events.push(`lock ${name}`);
        try {
          return await last(rest)();
        } finally {
          events.push(`release ${name}`);
        }
      },
    }),
  ],
  ...['acquire', 'tryAcquire'].map((method): [string, (events: string[]) => object] => [
    method,
    (events) => ({
      async [method](name: string) {
        events.push(`lock ${name}`);
        return { release: async () => void events.push(`release ${name}`) };
      },
    }),
  ]),
];

describe.each(MOCKS)('decorated methods with a mock that has %s', (_, makeMock) => {
  let events: string[];
  let orders: Orders;
  beforeEach(() => {
    events = [];
    orders = withMock(makeMock(events));
  });

  it('return promises', async () => {
    expect(await orders.ship()).toBe('shipped');
    expect(events).toEqual(['lock order', 'release order']);
  });

  it('return Observables', async () => {
    const feed = orders.feed();
    expect(events).toEqual([]);
    expect(await firstValueFrom(feed.pipe(toArray()))).toEqual([1, 2]);
    expect(events).toEqual(['lock feed', 'release feed']);
  });

  it('return async iterables, and release when the loop is left', async () => {
    const pages: number[] = [];
    for await (const page of orders.pages()) pages.push(page);
    expect(pages).toEqual([1, 2]);
    for await (const _page of orders.pages()) break;
    expect(events).toEqual(['lock pages', 'release pages', 'lock pages', 'release pages']);
  });

  it('pass on their own errors, and release', async () => {
    await expect(orders.fail()).rejects.toThrow(new RangeError('mine'));
    expect(events).toEqual(['lock broken', 'release broken']);
  });
});

describe('a mock of LockService', () => {
  it('may give the same lease to all', async () => {
    const lease = { release: async () => {} };
    const mocks = [
      { withLock: async (...args: unknown[]) => last(args)(lease) },
      { acquire: async () => lease },
      { tryAcquire: async () => lease },
    ];
    for (const mock of mocks) {
      const orders = withMock(mock);
      expect(await Promise.all(['a', 'b', 'c'].map((result) => orders.ship(result)))).toEqual(['a', 'b', 'c']);
    }
  });

  it('that is busy lets onBusy answer', async () => {
    const busy = () => Promise.reject(new LockBusyError('busy', 'order', -1, undefined));
    for (const mock of [{ withLock: busy }, { acquire: busy }, { tryAcquire: async () => null }]) {
      expect(await withMock(mock).tryToShip()).toBe('busy');
      await expect(withMock(mock).ship()).rejects.toThrow(LockBusyError);
    }
  });

  it('whose withLock does not call its function gets an error that says so, and names the method', async () => {
    const orders = withMock({ withLock: async () => 'answered' });
    await expect(orders.ship()).rejects.toThrow(/^Orders\.ship did not run: withLock of the mock did not call its/);
    await expect(orders.fail()).rejects.toThrow(/^Orders\.fail did not run/);
  });

  it('that invents every property is not taken for a real service', async () => {
    await expect(withMock(inventing()).ship()).rejects.toThrow(/did not run: withLock of the mock/);
    const orders = withMock(inventing({ withLock: async (...args: unknown[]) => last(args)() }));
    expect(await orders.ship()).toBe('shipped');
  });

  it('that is made from the class is not taken for a real service', async () => {
    const stub = Object.create(LockService.prototype);
    stub.withLock = async (...args: unknown[]) => last(args)();
    expect(await withMock(stub).ship()).toBe('shipped');
  });

  it('may be provided in place of LockService, without any module', async () => {
    const withLock = jest.fn(async (_name: string, fn: () => unknown) => fn());
    const app = await Test.createTestingModule({
      providers: [Orders, { provide: LockService, useValue: { withLock } }],
    }).compile();
    await app.init();
    expect(await app.get(Orders).ship()).toBe('shipped');
    expect(withLock).toHaveBeenCalledWith('order', expect.any(Function));
    await app.close();
  });

  it('gets a single key as a string, and several as a list', async () => {
    const names: unknown[] = [];
    const orders = withMock({
      async withLock(name: unknown, fn: () => unknown) {
        names.push(name);
        return fn();
      },
    });
    await orders.shipAll(['1']);
    await orders.shipAll(['1', '2']);
    await orders.listed();
    expect(names).toEqual(['order:1', ['order:1', 'order:2'], 'order']);
  });

  it('is asked for by a text that says how to test: with the test module, or with a mock', async () => {
    const spec = Test.createTestingModule({ providers: [Orders] }).compile();
    await expect(spec).rejects.toThrow(/RedisLockModule\.forRoot.+in a test.+LockTestingModule/s);
    await expect(spec).rejects.toThrow(/Orders/);
  });

  it('may come from useMocker, without any module', async () => {
    const mock = inventing({ withLock: async (...args: unknown[]) => last(args)() });
    const app = await Test.createTestingModule({ providers: [Orders] })
      .useMocker(() => mock)
      .compile();
    expect(await app.get(Orders).ship()).toBe('shipped');
    await app.close();
  });
});
