import { createServer, type Server } from 'node:net';
import { Injectable, Module } from '@nestjs/common';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import {
  DistributedLock,
  getLockServiceToken,
  InjectLockService,
  LockBusyError,
  LockService,
  RedisLockModule,
} from '../../lib/index.js';
import { getLockTestingToken, LockTestingController, LockTestingModule } from '../../lib/testing.js';
import { freePort } from '../support/servers/free-port.js';
import { until } from '../support/until.js';

let connections = 0;
let server: Server;
const port = await freePort();
beforeAll(async () => {
  server = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));
});
afterAll(() => new Promise((closed) => server.close(closed)));
beforeEach(() => {
  connections = 0;
});

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

  @DistributedLock({ key: 'bill', service: 'billing', waitTime: 0 })
  async bill() {
    return 'billed';
  }
}

const connection = `redis://127.0.0.1:${port}`;
const SILENT = { warn() {}, error() {} };
const DEFAULT = RedisLockModule.forRoot({ connection, shutdownTimeout: 0, logger: SILENT });
const NAMED = RedisLockModule.forRoot({ connection, name: 'billing', shutdownTimeout: 0, logger: SILENT });

@Module({ imports: [DEFAULT], providers: [Orders] })
class AppModule {}

@Module({ imports: [DEFAULT, NAMED], providers: [Orders, Billing] })
class TwoServersModule {}

const mock = () => ({ withLock: (...args: unknown[]) => (args.at(-1) as () => unknown)() });

describe('an application on Redis whose service is overridden', () => {
  it('connects when it is not overridden', async () => {
    const app = await Test.createTestingModule({ imports: [AppModule] }).compile();
    await until(() => connections > 0);
    await app.get(LockService).close();
    await app.close();
  });

  it.each([
    ['LockService', LockService],
    ['its token', getLockServiceToken()],
  ])('connects nowhere when %s is, and uses the mock everywhere', async (_, token) => {
    const locks = mock();
    const app = await Test.createTestingModule({ imports: [AppModule] })
      .overrideProvider(token)
      .useValue(locks)
      .compile();
    await app.init();
    expect(await app.get(Orders).ship()).toBe('shipped');
    expect(app.get(Orders).locks).toBe(locks);
    expect(app.get(getLockServiceToken())).toBe(locks);
    await app.close();
    await new Promise((later) => setTimeout(later, 100));
    expect(connections).toBe(0);
  });

  const MockService = class {
    withLock = mock().withLock;
  };
  type Builder = ReturnType<TestingModuleBuilder['overrideProvider']>;
  it.each<[string, (builder: Builder) => TestingModuleBuilder]>([
    ['useFactory', (builder) => builder.useFactory({ factory: mock })],
    ['useClass', (builder) => builder.useClass(MockService)],
  ])('connects nowhere with %s', async (_, use) => {
    const app = await use(Test.createTestingModule({ imports: [AppModule] }).overrideProvider(LockService)).compile();
    await app.init();
    expect(await app.get(Orders).ship()).toBe('shipped');
    await app.close();
    await new Promise((later) => setTimeout(later, 100));
    expect(connections).toBe(0);
  });

  it('takes a LockTestingController for each of two services', async () => {
    const [orders, billing] = [new LockTestingController(), new LockTestingController()];
    const app = await Test.createTestingModule({ imports: [TwoServersModule] })
      .overrideProvider(LockService)
      .useValue(orders.locks)
      .overrideProvider(getLockServiceToken('billing'))
      .useValue(billing.locks)
      .compile();
    await app.init();
    await orders.holdByAnother('bill');
    expect(await app.get(Billing).bill()).toBe('billed');
    await billing.holdByAnother('bill');
    await expect(app.get(Billing).bill()).rejects.toThrow(LockBusyError);
    expect(await app.get(Orders).ship()).toBe('shipped');
    await app.close();
    await Promise.all([orders.close(), billing.close()]);
    expect(connections).toBe(0);
  });
});

describe('LockTestingModule with a name', () => {
  it('has its own store and controller beside the one without', async () => {
    const options = { shutdownTimeout: 0 };
    const imports = [LockTestingModule.forRoot(options), LockTestingModule.forRoot({ name: 'billing', ...options })];
    const app = await Test.createTestingModule({ imports, providers: [Orders, Billing] }).compile();
    await app.init();
    const [testing, billing] = [
      app.get(LockTestingController),
      app.get<LockTestingController>(getLockTestingToken('billing')),
    ];
    expect(app.get(Billing).locks).toBe(billing.locks);
    await testing.holdByAnother('bill');
    expect(await app.get(Billing).bill()).toBe('billed');
    await billing.holdByAnother('bill');
    await expect(app.get(Billing).bill()).rejects.toThrow(LockBusyError);
    await app.close();
  });

  it('locks nothing as a pass-through', async () => {
    const imports = [LockTestingModule.passThrough({ name: 'billing', shutdownTimeout: 0 })];
    const app = await Test.createTestingModule({ imports, providers: [Billing] }).compile();
    await app.init();
    const { locks } = app.get(Billing);
    expect(await locks.withLock('bill', () => app.get(Billing).bill())).toBe('billed');
    await app.close();
  });
});
