import { Controller, Get, Injectable, Param } from '@nestjs/common';
import {
  attachLockService,
  currentLease,
  LockConfigurationError,
  LockDeadlockError,
  LockKeyError,
  type LockService,
  SingleFlight,
} from '../../../lib/index.js';
import { until } from '../../support/until.js';
import { sharedMemory, startApp } from '../support/start-app.js';

@Injectable()
class Prices {
  runs = 0;
  private open: () => void = () => {};
  readonly gate = new Promise<void>((resolve) => {
    this.open = resolve;
  });
  readonly factor = 2;

  end(): void {
    this.open();
  }

  @SingleFlight({ key: 'prices:#<args[0]>', keepFor: '1m' })
  async slow(currency: string) {
    this.runs++;
    await this.gate;
    return { currency, token: currentLease(`prices:${currency}`)?.fencingToken ?? 0 };
  }

  @SingleFlight({ key: (currency: string, amount: number) => `${currency}:${amount}`, keepFor: '1m' })
  async kept(_currency: string, amount: number) {
    this.runs++;
    return amount * this.factor;
  }

  @SingleFlight({
    key: 'day',
    keepFor: '1m',
    serialize: (day: Date) => day.toISOString(),
    deserialize: (text) => new Date(text),
  })
  async day() {
    this.runs++;
    return new Date(86_400_000);
  }

  @SingleFlight('all:#<args[0][*]>')
  async ofAll(currencies: string[]) {
    return currencies.length;
  }

  @SingleFlight('outer')
  async outer(): Promise<number> {
    return this.outer();
  }

  @SingleFlight('broken')
  async broken() {
    this.runs++;
    throw new RangeError('no prices today');
  }
}

class MorePrices extends Prices {}

@Controller('prices')
class PricesController {
  @Get(':currency')
  @SingleFlight('http:#<args[0]>')
  async show(@Param('currency') currency: string) {
    return { currency };
  }
}

describe('@SingleFlight', () => {
  const open = async () => {
    const options = sharedMemory();
    const apps = await Promise.all([1, 2].map(() => startApp({ providers: [Prices] }, options())));
    return {
      apps,
      prices: apps.map((app) => app.get(Prices)),
      close: () => Promise.all(apps.map((app) => app.close())),
    };
  };

  it('runs a method once for all calls with its key, in all applications, and gives each a copy of the result', async () => {
    const { apps, prices, close } = await open();
    const [one, two] = prices;
    const calls = [one.slow('eur')];
    await until(() => one.runs === 1);
    calls.push(one.slow('eur'), two.slow('eur'));
    await until(() => apps.every(({ locks }) => locks.engine.waiting('prices:eur') === 1));
    const other = two.slow('usd');
    await until(() => two.runs === 1);
    for (const each of prices) each.end();
    const results = await Promise.all(calls);
    expect(results[0]).toEqual({ currency: 'eur', token: expect.any(Number) });
    expect(results[0].token).toBeGreaterThan(0);
    expect(results).toEqual(Array(3).fill(results[0]));
    expect(new Set(results).size).toBe(3);
    expect((await other).currency).toBe('usd');
    expect([one.runs, two.runs]).toEqual([1, 1]);
    await close();
  });

  it('keeps results for keepFor, by names that a function makes, until they are forgotten', async () => {
    const { apps, prices, close } = await open();
    const [one, two] = prices;
    expect([await one.kept('eur', 4), await two.kept('eur', 4), await two.kept('eur', 5)]).toEqual([8, 8, 10]);
    expect([one.runs, two.runs]).toEqual([1, 1]);
    await apps[0].locks.forgetResult('eur:4');
    expect(await two.kept('eur', 4)).toBe(8);
    expect(two.runs).toBe(2);
    await close();
  });

  it('passes what is not JSON on by a serializer', async () => {
    const { prices, close } = await open();
    for (const each of prices) expect(await each.day()).toEqual(new Date(86_400_000));
    expect(prices.map(({ runs }) => runs)).toEqual([1, 0]);
    await close();
  });

  it('passes errors of the method on, and refuses a call from inside', async () => {
    const { prices, close } = await open();
    await expect(prices[0].broken()).rejects.toThrow(RangeError);
    const inside = prices[0].outer();
    await expect(inside).rejects.toThrow(LockDeadlockError);
    await close();
  });

  it('refuses a key without a value, and one of several names, before the method runs', async () => {
    const { prices, close } = await open();
    const [one] = prices;
    const call = one.slow(undefined as never);
    await expect(call).rejects.toThrow(LockKeyError);
    await expect(call).rejects.toThrow('Prices.slow');
    await expect(one.ofAll(['eur', 'usd'])).rejects.toThrow('Prices.ofAll: the key makes 2 names');
    expect(await one.ofAll(['eur'])).toBe(1);
    expect(one.runs).toBe(0);
    await close();
  });

  it('reports calls by the template and the method', async () => {
    const { apps, prices, close } = await open();
    const events: unknown[] = [];
    apps[0].locks.on('acquired', ({ name, type, group, method }) => events.push([name, type, group, method]));
    apps[1].locks.on('shared', ({ name, group, method, shared }) => events.push([name, group, method, shared]));
    await prices[0].day();
    await prices[1].day();
    expect(events).toEqual([
      ['day', 'flight', 'day', 'Prices.day'],
      ['day', 'day', 'Prices.day', true],
    ]);
    await close();
  });

  it('works on inherited methods and handlers, and leaves name and metadata alone', async () => {
    const app = await startApp({ providers: [MorePrices], controllers: [PricesController] });
    expect(await app.get(MorePrices).kept('eur', 3)).toBe(6);
    expect(await app.get(PricesController).show('eur')).toEqual({ currency: 'eur' });
    expect(Reflect.getMetadata('path', PricesController.prototype.show)).toBe(':currency');
    expect(Prices.prototype.slow.name).toBe('slow');
    expect(Prices.prototype.slow).toHaveLength(1);
    await app.close();
  });

  it('does not run the method without a lock service', async () => {
    const call = new Prices().slow('eur');
    await expect(call).rejects.toThrow(LockConfigurationError);
    await expect(call).rejects.toThrow('Prices.slow did not run, because this instance has no lock service');
  });

  it('uses singleFlight of a mock, and does not run without one', async () => {
    const calls: unknown[] = [];
    const mock = {
      singleFlight: async (...args: unknown[]) => {
        calls.push(args.slice(0, -1));
        return (args.at(-1) as () => unknown)();
      },
    };
    const prices = attachLockService(new Prices(), mock as unknown as LockService);
    expect(await prices.kept('eur', 4)).toBe(8);
    expect(await prices.ofAll(['eur'])).toBe(1);
    expect(calls).toEqual([['eur:4', { keepFor: '1m' }], ['all:eur']]);
    const without = attachLockService(new Prices(), { withLock: () => {} } as unknown as LockService);
    await expect(without.kept('eur', 4)).rejects.toThrow(
      'Prices.kept did not run, because the replacement of LockService',
    );
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, '@SingleFlight needs a key, or options with a key'],
    ['an unknown option', { key: 'a', keepfor: 1 }, "there is no option 'keepfor'; did you mean 'keepFor'?"],
    ['a lock type', { key: 'a', type: 'fair' }, "there is no option 'type'"],
    ['a duration that is none', { key: 'a', keepFor: 'soon' }, 'Bad.method: keepFor'],
    ['a waitTime that is none', { key: 'a', waitTime: -1 }, 'Bad.method: waitTime'],
    ['half a serializer', { key: 'a', serialize: String }, 'give both or neither'],
    ['an onLost that is none', { key: 'a', onLost: 'ignore' }, "it must be 'throw' or 'warn'"],
    ['a list', ['a', 'b'], 'a single flight has one name'],
    ['a template with a mistake', 'prices:#{id}', 'Bad.method'],
  ])('refuses %s when the class is defined', (_, options, message) => {
    const define = () => {
      class Bad {
        @SingleFlight(options as string)
        async method() {}
      }
      return Bad;
    };
    expect(define).toThrow(LockConfigurationError);
    expect(define).toThrow(message);
  });

  it('refuses a method whose result is not shared as a whole', () => {
    expect(() => {
      class Bad {
        // @ts-expect-error an iteration is no promise
        @SingleFlight('a')
        async *pages() {
          yield 1;
        }
      }
      return Bad;
    }).toThrow('Bad.pages: @SingleFlight is for methods that return a promise');
  });
});
