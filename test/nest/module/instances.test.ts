import { Injectable, Module, type OnModuleInit, Scope } from '@nestjs/common';
import { ContextIdFactory, REQUEST } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { attachLockService } from '../../../lib/nest/lock-service-property.js';
import { getLockServiceToken } from '../../../lib/nest/redis-lock.constants.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { startApp } from '../support/start-app.js';

class Orders {
  runs = 0;

  @DistributedLock('order')
  async ship() {
    return ++this.runs;
  }

  @DistributedLock('order')
  async *list() {
    yield ++this.runs;
  }
}

class Bills {
  @DistributedLock({ key: 'bill', service: 'billing' })
  async send() {
    return 'sent';
  }
}

const fail = (): never => {
  throw new Error('there is no request');
};

describe('instances that NestJS injects no properties into', () => {
  const apps: TestingModule[] = [];
  const start = async (...args: Parameters<typeof startApp>) => {
    const app = await startApp(...args);
    apps.push(app);
    return app;
  };
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
  });

  it.each(['useFactory', 'useValue', 'async useFactory'])(
    'get their lock service when they come from %s',
    async (how) => {
      const provider = {
        useFactory: { provide: Orders, useFactory: () => new Orders() },
        useValue: { provide: Orders, useValue: new Orders() },
        'async useFactory': { provide: Orders, useFactory: async () => new Orders() },
      }[how] as { provide: typeof Orders; useValue: Orders };
      const app = await start({ providers: [provider, { provide: 'alias', useExisting: Orders }] });
      expect(await app.get(Orders).ship()).toBe(1);
      expect(await app.get<Orders>('alias').ship()).toBe(2);
    },
  );

  it.each(['Array', 'Set', 'Map'])('get their lock service in the %s that a factory returns', async (kind) => {
    const containers = {
      Array: () => [new Orders(), 'text', null],
      Set: () => new Set([new Orders()]),
      Map: () => new Map([['eu', new Orders()]]),
    };
    const useFactory = containers[kind as keyof typeof containers] as () => Iterable<unknown>;
    const app = await start({
      providers: [
        { provide: 'all', useFactory },
        { provide: 'each', scope: Scope.TRANSIENT, useFactory },
      ],
    });
    const first = (made: unknown) =>
      (kind === 'Map' ? [...(made as Map<string, Orders>).values()] : [...(made as Orders[])])[0];
    expect(await first(app.get('all')).ship()).toBe(1);
    expect(await first(await app.resolve('each')).ship()).toBe(1);
  });

  it('keep the service of their own module in the list of another one', async () => {
    const local = RedisLockModule.forRoot({ backend: 'memory', isGlobal: false, keyPrefix: 'local:' });
    @Module({
      imports: [local],
      providers: [{ provide: Orders, useFactory: () => new Orders() }],
      exports: [Orders, RedisLockModule],
    })
    class Feature {}
    const app = await start({
      imports: [Feature],
      providers: [{ provide: 'all', inject: [Orders], useFactory: (orders: Orders) => [orders] }],
    });
    const [orders] = app.get<Orders[]>('all');
    const attached = (orders as never as Record<symbol, LockService>)[getLockServiceToken()];
    expect(attached.place.keyPrefix).toBe('local:');
  });

  it('can be used in onModuleInit of other modules', async () => {
    @Injectable()
    class Starter implements OnModuleInit {
      constructor(readonly orders: Orders) {}
      async onModuleInit() {
        await this.orders.ship();
      }
    }
    @Module({ providers: [{ provide: Orders, useFactory: () => new Orders() }, Starter] })
    class Feature {}
    const app = await start({ imports: [Feature] });
    expect(app.get(Orders).runs).toBe(1);
  });

  it('get the service that their module would inject', async () => {
    const local = RedisLockModule.forRoot({ backend: 'memory', isGlobal: false, keyPrefix: 'local:' });
    @Module({ imports: [local], exports: [RedisLockModule] })
    class Passing {}
    @Module({ imports: [Passing], providers: [{ provide: Orders, useFactory: () => new Orders() }] })
    class Feature {}
    const app = await start({ imports: [Feature], providers: [{ provide: 'root', useFactory: () => new Orders() }] });
    const prefixes: string[] = [];
    for (const orders of [app.get(Orders), app.get<Orders>('root')]) {
      for (const service of app.get(LockService, { each: true })) {
        service.on('acquired', () => prefixes.push(service.engine.settings.keyPrefix));
      }
      await orders.ship();
    }
    expect([...new Set(prefixes)]).toEqual(['local:', 'lock:']);
  });

  it('get a named service, too', async () => {
    const app = await start({
      imports: [RedisLockModule.forRoot({ backend: 'memory', name: 'billing' })],
      providers: [{ provide: Bills, useFactory: () => new Bills() }],
    });
    expect(await app.get(Bills).send()).toBe('sent');
  });

  it.each([Scope.REQUEST, Scope.TRANSIENT])('get it when they are made later (scope %i)', async (scope) => {
    @Injectable()
    class User {
      constructor(readonly orders: Orders) {}
    }
    const inject = scope === Scope.REQUEST ? [REQUEST] : [];
    const app = await start({ providers: [{ provide: Orders, scope, inject, useFactory: () => new Orders() }, User] });
    const make = () => app.resolve(Orders, ContextIdFactory.create());
    const [one, other] = [await make(), await make()];
    expect(one).not.toBe(other);
    expect(await Promise.all([one.ship(), other.ship()])).toEqual([1, 1]);
    const user = scope === Scope.REQUEST ? await app.resolve(User) : app.get(User);
    expect(await user.orders.ship()).toBe(1);
  });

  it('can serve the next application when the first one is closed, but not two at once', async () => {
    const shared = new Orders();
    const providers = [{ provide: Orders, useValue: shared }];
    const first = await start({ providers });
    await shared.ship();
    await expect(start({ providers })).rejects.toThrow(/^Orders already has the lock service of another application/);
    await first.close();
    await start({ providers });
    expect(await shared.ship()).toBe(2);
  });

  it('take the defaults of their own application, where one class is used in several', async () => {
    class Reports {
      @DistributedLock({ key: 'report', type: 'reentrant' })
      async build() {
        return 'built';
      }
    }
    const providers = [{ provide: Reports, useFactory: () => new Reports() }];
    const waitTimes = [0, '20ms'] as const;
    const messages: string[] = [];
    for (const waitTime of waitTimes) {
      const app = await start({ providers }, { backend: 'memory', waitTime });
      const lease = await app.get(LockService).acquire('report');
      messages.push(
        await app
          .get(Reports)
          .build()
          .catch(({ message }: Error) => message),
      );
      await lease.release();
      expect(await app.get(Reports).build()).toBe('built');
    }
    expect(messages[0]).not.toContain('not free within');
    expect(messages[1]).toContain('not free within 20 ms');
  });

  it('stop the start when they are frozen', async () => {
    const starting = start({ providers: [{ provide: Orders, useValue: Object.freeze(new Orders()) }] });
    await expect(starting).rejects.toThrow(/^Orders is frozen/);
  });

  it('are not affected if they have no decorated methods', async () => {
    const values = [
      null,
      undefined,
      5,
      'text',
      Symbol('s'),
      Object.freeze({}),
      Object.create(null),
      new Proxy({}, {}),
      new Proxy({}, { has: () => fail() }),
      () => 1,
    ];
    const providers = values.map((useValue, index) => ({ provide: `value-${index}`, useValue }));
    await expect(start({ providers })).resolves.toBeDefined();
  });
});

describe('an instance without a lock service', () => {
  it('does not run its method, and says what to do', async () => {
    const orders = new Orders();
    await expect(orders.ship()).rejects.toThrow(LockConfigurationError);
    await expect(orders.ship()).rejects.toThrow(
      /^Orders\.ship did not run, because this instance has no lock service\..*attachLockService/,
    );
    await expect(orders.list().next()).rejects.toThrow(/^Orders\.list did not run/);
    await expect(new Bills().send()).rejects.toThrow(
      /^Bills\.send did not run, because this instance has no lock service 'billing'/,
    );
    expect(orders.runs).toBe(0);
  });

  it('explains that the method was called without its instance', async () => {
    const { ship } = new Orders();
    await expect(ship()).rejects.toThrow(/^Orders\.ship was called without its instance, and did not run/);
    await expect(ship.call(5 as never)).rejects.toThrow('Orders.ship did not run');
  });

  it('can be given one by hand', async () => {
    const locks = createLockService({ backend: 'memory' });
    expect(await attachLockService(new Orders(), locks).ship()).toBe(1);
    expect(await attachLockService(new Bills(), locks, 'billing').send()).toBe('sent');
    expect(() => attachLockService(new Orders(), locks, 'billing')).toThrow(
      "Orders has no method with @DistributedLock({ service: 'billing' })",
    );
    expect(() => attachLockService({}, locks)).toThrow('Object has no method with @DistributedLock');
    await locks.close();
  });
});

describe('a testing module', () => {
  it('may replace a decorated provider by anything', async () => {
    const app = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ backend: 'memory' })],
      providers: [{ provide: Orders, useClass: Orders }],
    })
      .overrideProvider(Orders)
      .useValue({ ship: async () => 'fake' })
      .compile();
    await app.init();
    expect(await app.get(Orders).ship()).toBe('fake');
    await app.close();
  });
});
