import { applyDecorators, Controller, Get, Param, SetMetadata } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { SingleFlight } from '../../../lib/nest/decorator/single-flight.decorator.js';
import { Leader } from '../../../lib/nest/leader/leader.decorator.js';
import { attachLockService } from '../../../lib/nest/lock-service-property.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';

const silent = { warn() {}, error() {} };
const MARK = Symbol('mark');
const Mark = (_target: object, _key: string, descriptor: PropertyDescriptor) => {
  Object.assign(descriptor.value, { [MARK]: 'marked', note: 'by name' });
};
const Below = SetMetadata('below', 1);
const Above = SetMetadata('above', 2);
const symbol = Symbol('secretly');

@Controller('things')
class Things {
  readonly region = 'eu';

  @Above
  @DistributedLock('thing:#<args[0]>')
  @Below
  @Mark
  @Get(':id')
  async find(@Param('id') id: string, _second: number, ..._rest: unknown[]) {
    return `${id}@${this.region}`;
  }

  @DistributedLock('a')
  @DistributedLock('b')
  async *twice() {
    yield 1;
  }

  @DistributedLock('secret')
  async [symbol]() {}

  async unlocked(_id: string) {}
}

describe('the wrapped method', () => {
  const method = Things.prototype.find;

  it('has the name, length and kind of the original', () => {
    expect(method.name).toBe('find');
    expect(method).toHaveLength(2);
    expect(Object.prototype.toString.call(method)).toBe('[object AsyncFunction]');
    expect(Object.hasOwn(method, 'prototype')).toBe(false);
    expect(Object.prototype.toString.call(Things.prototype.twice)).toBe('[object AsyncGeneratorFunction]');
    expect(Things.prototype[symbol].name).toBe('[secretly]');
  });

  it('keeps the metadata of decorators above and below', () => {
    expect(Reflect.getMetadata('below', method)).toBe(1);
    expect(Reflect.getMetadata('above', method)).toBe(2);
    expect(Reflect.getMetadata('path', method)).toBe(':id');
    expect(Reflect.getMetadata('design:returntype', Things.prototype, 'find')).toBe(Promise);
  });

  it('keeps own properties and symbols of the function', () => {
    expect({ ...method }).toEqual({ [MARK]: 'marked', note: 'by name' });
  });

  it('keeps parameter decorators and types', () => {
    expect(Object.values(Reflect.getMetadata(ROUTE_ARGS_METADATA, Things, 'find'))).toEqual([
      expect.objectContaining({ index: 0, data: 'id' }),
    ]);
    expect(Reflect.getMetadata('design:paramtypes', Things.prototype, 'find')).toEqual([String, Number, Array]);
  });

  it('may come from a decorator of the application, made by applyDecorators', async () => {
    const LockedRoute = (key: string) => applyDecorators(Get(), DistributedLock(key), Below);
    class Routes {
      @LockedRoute('route')
      async all() {
        return currentLease()?.name;
      }
    }
    const locks = createLockService({ backend: 'memory', logger: silent });
    expect(await attachLockService(new Routes(), locks).all()).toBe('route');
    expect(Reflect.getMetadata('path', Routes.prototype.all)).toBe('/');
    expect(Reflect.getMetadata('below', Routes.prototype.all)).toBe(1);
    await locks.close();
  });

  it('is writable and configurable as any method is', () => {
    const { value: _value, ...shape } = Object.getOwnPropertyDescriptor(Things.prototype, 'find') as PropertyDescriptor;
    const { value: _other, ...plain } = Object.getOwnPropertyDescriptor(
      Things.prototype,
      'unlocked',
    ) as PropertyDescriptor;
    expect(shape).toEqual(plain);
  });

  it('leaves no visible trace on instances', async () => {
    const locks = createLockService({ backend: 'memory', logger: silent });
    const things = attachLockService(new Things(), locks);
    expect(await things.find('1', 2)).toBe('1@eu');
    await locks.close();
    expect(things).toEqual(new Things());
    expect({ ...things }).toEqual({ region: 'eu' });
    expect(Object.getOwnPropertyNames(things)).toEqual(['region']);
    for (const key in things) expect(key).toBe('region');
    expect(JSON.stringify(things)).toBe('{"region":"eu"}');
  });
});

describe('where it cannot be used', () => {
  const define = (decorate: () => unknown) => expect(decorate);

  it('refuses static methods', () => {
    define(() => {
      class Jobs {
        @DistributedLock('job')
        static async run() {}
        async other() {}
      }
      return Jobs;
    }).toThrow(/^Jobs\.run is static: /);
  });

  it('refuses accessors', () => {
    define(() => {
      class Jobs {
        // @ts-expect-error a getter gives no promise
        @DistributedLock('job')
        get next() {
          return 1;
        }
      }
      return Jobs;
    }).toThrow(/^Jobs\.next is an accessor: /);
  });

  it('refuses properties', () => {
    define(() => {
      class Jobs {
        // @ts-expect-error a property has no descriptor
        @DistributedLock('job')
        run = async () => {};
      }
      return Jobs;
    }).toThrow(/^Jobs\.run is a field: /);
  });

  it('refuses generators that cannot wait', () => {
    define(() => {
      class Jobs {
        // @ts-expect-error a generator cannot wait
        @DistributedLock('job')
        *run() {
          yield 1;
        }
      }
      return Jobs;
    }).toThrow('Jobs.run is a generator, which cannot wait for a lock: make it async *run()');
  });

  it('says what is missing if TypeScript compiles another kind of decorators', () => {
    const decorate = DistributedLock('job') as unknown as (method: unknown, context: unknown) => void;
    define(() => decorate(async () => {}, { kind: 'method', name: 'run' })).toThrow('experimentalDecorators');
  });

  it.each<[string, (...args: never[]) => unknown]>([
    ['@DistributedLock', DistributedLock('job')],
    ['@SingleFlight', SingleFlight('job')],
    ['@Leader', Leader('job')],
  ])('says so for %s on everything that standard decorators decorate', (name, decorator) => {
    const decorate = decorator as unknown as (value: unknown, context: unknown) => void;
    const values: [string, unknown][] = [
      ['method', async () => {}],
      ['field', undefined],
      ['accessor', { get() {}, set() {} }],
      ['getter', () => {}],
    ];
    for (const [kind, value] of values)
      define(() => decorate(value, { kind, name: 'run', static: false })).toThrow(
        `run: ${name} needs "experimentalDecorators" in tsconfig.json, as NestJS does`,
      );
  });

  it('says how to write a field as a method', () => {
    const decorators = {
      '@DistributedLock': DistributedLock('job'),
      '@SingleFlight': SingleFlight('job'),
      '@Leader': Leader('job'),
    };
    for (const [name, given] of Object.entries(decorators)) {
      const decorator = given as unknown as PropertyDecorator;
      define(() => {
        class Jobs {
          @decorator
          run = async () => {};
        }
        return Jobs;
      }).toThrow(`Jobs.run is a field: ${name} is for methods; write async run() { … }`);
    }
  });

  it('names a class without a name, and a method that is a symbol', () => {
    const decorate = DistributedLock('#<') as MethodDecorator;
    define(() => decorate((() => class {})().prototype, symbol, { value: async () => {} })).toThrow(
      /^\(anonymous class\)\.\[secretly\]: /,
    );
  });
});

describe('what is checked when the class is defined', () => {
  class Jobs {
    async run() {}
    answer() {}
  }
  const decorate = (options: unknown) => () =>
    (DistributedLock(options as never) as MethodDecorator)(
      Jobs.prototype,
      'run',
      Object.getOwnPropertyDescriptor(Jobs.prototype, 'run') as never,
    );

  it.each<[string, unknown]>([
    ["the key 'job:#<args[0]' is wrong at character 14", 'job:#<args[0]'],
    ["the key 'job:#<args[0]' is wrong at character 14", ['fine', 'job:#<args[0]']],
    ["the key 'job:#<args[0]' is wrong at character 14", { key: 'job:#<args[0]' }],
    ['the lock name is empty', ''],
    ['key is an empty list', []],
    ['key is undefined', {}],
    ['key is 5', { key: 5 }],
    ['key is a list', { key: [5] }],
    ['needs a key', undefined],
    ['needs a key', null],
    ['needs a key', 5],
    ["@DistributedLock: there is no option 'leasTime'; did you mean 'leaseTime'?", { key: 'job', leasTime: 100 }],
    ["there is no option 'WAITTIME'; did you mean 'waitTime'?", { key: 'job', WAITTIME: 100 }],
    ["there is no option 'zzzzzz'; there are key, service, signal, waitTime", { key: 'job', zzzzzz: 1 }],
    ['leaseTime is 99: it must be at least 100 ms', { key: 'job', leaseTime: 99 }],
    ["leaseTime is '50ms'", { key: 'job', leaseTime: '50ms' }],
    ['leaseTime is NaN', { key: 'job', leaseTime: Number.NaN }],
    ['waitTime is -1', { key: 'job', waitTime: -1 }],
    ["waitTime is 'soon'", { key: 'job', waitTime: 'soon' }],
    ['waitTime is NaN', { key: 'job', waitTime: Number.NaN }],
    ['holdAtLeast is -5', { key: 'job', holdAtLeast: -5 }],
    ["holdAtLeast is '1 fortnight'", { key: 'job', holdAtLeast: '1 fortnight' }],
    ["type is 'mutex'; it must be 'reentrant', 'fair', 'read', 'write' or 'fenced'", { key: 'job', type: 'mutex' }],
    ["onLost is 'ignore'; it must be 'throw' or 'warn'", { key: 'job', onLost: 'ignore' }],
    ["reentry is 'no'; it must be true or false", { key: 'job', reentry: 'no' }],
    ["returns is 'stream'; it must be 'promise', 'observable' or 'iterable'", { key: 'job', returns: 'stream' }],
    ["service is ''", { key: 'job', service: '' }],
    ["onBusy is 'answer'; it must be 'throw', 'skip', 'newest' or a function that", { key: 'job', onBusy: 'answer' }],
    ['onBusy is 5', { key: 'job', onBusy: 5 }],
  ])('%s', (reason, options) => {
    expect(decorate(options)).toThrow(expect.objectContaining({ name: 'LockConfigurationError' }));
    expect(decorate(options)).toThrow(/^Jobs\.run: /);
    expect(decorate(options)).toThrow(reason);
    expect(Reflect.getMetadataKeys(Jobs)).toEqual([]);
  });

  it('accepts durations in both forms, and all values of the other options', () => {
    const options = {
      key: 'job',
      waitTime: '1s',
      leaseTime: 100,
      holdAtLeast: 0,
      type: 'fair',
      onLost: 'warn',
      onBusy: () => 'answer',
    };
    expect(decorate(options)).not.toThrow();
    expect(decorate({ key: 'job', waitTime: Number.POSITIVE_INFINITY })).not.toThrow();
  });
});
