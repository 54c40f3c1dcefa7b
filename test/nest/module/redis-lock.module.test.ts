import { Inject, Injectable, Module, Scope } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { InjectLockService } from '../../../lib/nest/inject-lock-service.decorator.js';
import { getLockServiceToken } from '../../../lib/nest/redis-lock.constants.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import type {
  RedisLockAsyncOptions,
  RedisLockFactoryOptions,
  RedisLockOptionsFactory,
} from '../../../lib/nest/redis-lock-async.options.js';
import { LockService } from '../../../lib/service/lock-service.js';

const MEMORY = { backend: 'memory' } as const;
const prefixOf = (locks: LockService) => locks.engine.settings.keyPrefix;

@Injectable()
class Orders {
  constructor(readonly locks: LockService) {}

  @DistributedLock('order')
  async ship() {
    return 'shipped';
  }
}

@Injectable()
class Billing {
  constructor(@InjectLockService('billing') readonly locks: LockService) {}

  @DistributedLock({ key: 'bill', service: 'billing' })
  async bill() {
    return this.locks.isLocked('bill');
  }

  @DistributedLock('bill')
  async other() {
    return this.locks.isLocked('bill');
  }
}

let settings = 0;

@Injectable()
class Settings implements RedisLockOptionsFactory {
  readonly id = ++settings;
  async createRedisLockOptions(): Promise<RedisLockFactoryOptions> {
    return { ...MEMORY, keyPrefix: `settings-${this.id}:` };
  }
}

@Module({ providers: [Settings], exports: [Settings] })
class SettingsModule {}

const start = async (
  imports: Parameters<typeof Test.createTestingModule>[0]['imports'],
  providers: (typeof Orders | typeof Billing)[] = [Orders],
) => {
  const app = await Test.createTestingModule({ imports, providers }).compile();
  await app.init();
  onTestEnd.push(() => app.close());
  return app;
};
const onTestEnd: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of onTestEnd.splice(0)) await end();
});

describe('RedisLockModule.forRoot', () => {
  it('makes the service injectable by its class and by its token, and decorators work', async () => {
    const app = await start([RedisLockModule.forRoot(MEMORY)]);
    expect(app.get(Orders).locks).toBe(app.get(LockService));
    expect(app.get(getLockServiceToken())).toBe(app.get(LockService));
    expect(await app.get(Orders).ship()).toBe('shipped');
  });

  it('refuses isGlobal as a string, which would count as true', () => {
    expect(() => RedisLockModule.forRoot({ ...MEMORY, isGlobal: 'false' as never })).toThrow(
      "isGlobal is 'false'; it must be true or false",
    );
  });

  it('serves all modules by default, and with isGlobal: false those that import it', async () => {
    @Module({ providers: [Orders] })
    class Feature {}
    const app = await start([RedisLockModule.forRoot(MEMORY), Feature], []);
    expect(await app.get(Orders).ship()).toBe('shipped');
    await expect(start([RedisLockModule.forRoot({ ...MEMORY, isGlobal: false }), Feature], [])).rejects.toThrow(
      "Nest can't resolve dependencies of the Orders",
    );

    @Module({
      imports: [RedisLockModule.forRoot({ ...MEMORY, isGlobal: false, keyPrefix: 'mine:' })],
      providers: [Orders],
    })
    class Importing {}
    expect(prefixOf((await start([Importing], [])).get(Orders).locks)).toBe('mine:');
  });

  it('keeps named services apart from the default one', async () => {
    const app = await start(
      [
        RedisLockModule.forRoot({ ...MEMORY, name: 'billing', keyPrefix: 'billing:' }),
        RedisLockModule.forRoot({ ...MEMORY, keyPrefix: 'main:' }),
      ],
      [Orders, Billing],
    );
    expect(prefixOf(app.get(Orders).locks)).toBe('main:');
    expect(prefixOf(app.get(Billing).locks)).toBe('billing:');
    expect(await app.get(Billing).bill()).toBe(true);
    expect(await app.get(Billing).other()).toBe(false);
  });

  it("warns through NestJS's logger", async () => {
    const warnings: unknown[] = [];
    const app = await start([RedisLockModule.forRoot(MEMORY)]);
    app.useLogger({ log() {}, error() {}, warn: (...message: unknown[]) => warnings.push(message) });
    app.get(LockService).engine.settings.logger.warn('careful');
    expect(warnings).toEqual([['careful', 'RedisLock']]);
  });

  it.each<[string, object | undefined]>([
    ['give one of connection, backend and quorum', {}],
    ['give one of connection, backend and quorum', undefined],
    ['connection is undefined. If the value comes from an environment variable', { connection: undefined }],
    ["there is no option 'keyPrefx'", { ...MEMORY, keyPrefx: 'a' }],
    ['watchdogTimeout', { ...MEMORY, watchdogTimeout: 5 }],
    ['The name of a RedisLockModule must be a string', { ...MEMORY, name: '' }],
    ['The name of a RedisLockModule must be a string', { ...MEMORY, name: 5 }],
  ])('stops the start: %s', async (reason, options) => {
    const starting = (async () => start([RedisLockModule.forRoot(options as never)]))();
    await expect(starting).rejects.toThrow(LockConfigurationError);
    await expect(starting).rejects.toThrow(reason);
  });

  it('stops the start when two global modules have the same name', async () => {
    const two = [RedisLockModule.forRoot(MEMORY), RedisLockModule.forRoot({ ...MEMORY, keyPrefix: 'b:' })];
    await expect(start(two)).rejects.toThrow('RedisLockModule is imported 2 times without a name');
  });
});

describe('RedisLockModule.forRootAsync', () => {
  it('takes a factory with dependencies', async () => {
    const app = await start([
      RedisLockModule.forRootAsync({
        imports: [SettingsModule],
        inject: [Settings],
        useFactory: async (from: Settings) => ({ ...MEMORY, keyPrefix: `factory-${from.id}:` }),
      }),
    ]);
    expect(prefixOf(app.get(LockService))).toBe(`factory-${app.get(Settings).id}:`);
  });

  it('takes a class, and makes its own instance', async () => {
    const before = settings;
    const app = await start([SettingsModule, RedisLockModule.forRootAsync({ useClass: Settings })]);
    expect(settings).toBe(before + 2);
    expect(prefixOf(app.get(LockService))).toMatch(/^settings-/);
  });

  it('takes an existing provider, that very instance', async () => {
    const before = settings;
    const app = await start([RedisLockModule.forRootAsync({ imports: [SettingsModule], useExisting: Settings })]);
    expect(settings).toBe(before + 1);
    expect(prefixOf(app.get(LockService))).toBe(`settings-${app.get(Settings).id}:`);
  });

  it('takes the name and isGlobal beside the factory', async () => {
    const useFactory = () => ({ ...MEMORY, keyPrefix: 'billing:' });
    const app = await start(
      [RedisLockModule.forRoot(MEMORY), RedisLockModule.forRootAsync({ name: 'billing', useFactory })],
      [Billing],
    );
    expect(prefixOf(app.get(Billing).locks)).toBe('billing:');
    @Module({ providers: [Orders] })
    class Feature {}
    await expect(start([RedisLockModule.forRootAsync({ isGlobal: false, useFactory }), Feature], [])).rejects.toThrow(
      "Nest can't resolve",
    );
  });

  it.each<[string, object]>([
    ["'name' came from the factory", { useFactory: () => ({ ...MEMORY, name: 'a' }) }],
    ["'isGlobal' came from the factory", { useFactory: () => ({ ...MEMORY, isGlobal: true }) }],
    ['give one of connection, backend and quorum', { useFactory: () => undefined }],
    ['connection is undefined. If the value comes', { useFactory: () => ({ connection: undefined }) }],
    ["there is no option 'keyPrefx'", { useFactory: () => ({ ...MEMORY, keyPrefx: 'a' }) }],
    ["'keyPrefix' belongs in what the factory returns", { useFactory: () => MEMORY, keyPrefix: 'a' }],
    ['needs one of useFactory, useClass and useExisting', { imports: [] }],
  ])('stops the start: %s', async (reason, options) => {
    const starting = (async () => start([RedisLockModule.forRootAsync(options as never)]))();
    await expect(starting).rejects.toThrow(LockConfigurationError);
    await expect(starting).rejects.toThrow(reason);
  });
});

describe('options that depend on a request', () => {
  @Injectable({ scope: Scope.REQUEST })
  class Tenant {}

  @Injectable({ scope: Scope.REQUEST, durable: true })
  class DurableTenant {}

  @Injectable()
  class TenantSettings implements RedisLockOptionsFactory {
    constructor(@Inject(Tenant) readonly tenant: Tenant) {}
    createRedisLockOptions(): RedisLockFactoryOptions {
      return MEMORY;
    }
  }

  @Module({
    providers: [Tenant, DurableTenant, TenantSettings],
    exports: [Tenant, DurableTenant, TenantSettings],
  })
  class Tenants {}

  it.each<[string, RedisLockAsyncOptions]>([
    ['REQUEST', { inject: [REQUEST], useFactory: () => MEMORY }],
    ['Tenant', { imports: [Tenants], inject: [Tenant], useFactory: () => MEMORY }],
    ['DurableTenant', { imports: [Tenants], inject: [DurableTenant], useFactory: () => MEMORY }],
    ['Tenant', { imports: [Tenants], useExisting: TenantSettings }],
    ['Tenant', { imports: [Tenants], useClass: TenantSettings }],
    ['Tenant', { imports: [Tenants], useExisting: TenantSettings, name: 'billing' }],
  ])('stop the start, and %s is named as the reason', async (provider, options) => {
    const starting = start([RedisLockModule.forRootAsync(options)], []);
    await expect(starting).rejects.toThrow(LockConfigurationError);
    await expect(starting).rejects.toThrow(
      `RedisLockModule.forRootAsync: the options depend on ${provider}, which NestJS creates for each request`,
    );
  });

  it('are not asked for when a test has replaced the service', async () => {
    const imports = [RedisLockModule.forRootAsync({ inject: [REQUEST], useFactory: () => MEMORY })];
    const builder = Test.createTestingModule({ imports, providers: [Orders] });
    const app = await builder
      .overrideProvider(LockService)
      .useValue({ withLock: async (_name: string, fn: () => unknown) => fn() })
      .compile();
    await app.init();
    onTestEnd.push(() => app.close());
    expect(await app.get(Orders).ship()).toBe('shipped');
  });

  it('may depend on a transient provider, because there is one service all the same', async () => {
    @Injectable({ scope: Scope.TRANSIENT })
    class Passing {}
    @Module({ providers: [Passing], exports: [Passing] })
    class PassingModule {}
    const app = await start([
      RedisLockModule.forRootAsync({ imports: [PassingModule], inject: [Passing], useFactory: () => MEMORY }),
    ]);
    expect(app.get(Orders).locks).toBe(app.get(LockService));
  });
});

describe('without a RedisLockModule', () => {
  it('the application does not start, and says which import is missing', async () => {
    @Injectable()
    class Plain {
      @DistributedLock('plain')
      async run() {}
    }
    await expect(start([], [Plain as never])).rejects.toThrow(
      /dependencies of the .*Plain.*import RedisLockModule\.forRoot\(\.\.\.\) into the root module/s,
    );
    await expect(start([], [Billing])).rejects.toThrow(
      /dependencies of the .*Billing.*import RedisLockModule\.forRoot\(\{ name: 'billing', \.\.\. \}\) into the root module/s,
    );
  });
});

describe('two applications in one process', () => {
  it('have a lock service each', async () => {
    const one = await start([RedisLockModule.forRoot({ ...MEMORY, keyPrefix: 'one:' })]);
    const two = await start([RedisLockModule.forRoot({ ...MEMORY, keyPrefix: 'two:' })]);
    await using _busy = await one.get(LockService).acquire('order');
    expect(await two.get(Orders).ship()).toBe('shipped');
    await two.close();
    await _busy.release();
    expect(await one.get(Orders).ship()).toBe('shipped');
    await expect(two.get(Orders).ship()).rejects.toThrow('Orders.ship: the lock service is shutting down');
  });
});
