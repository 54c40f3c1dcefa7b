// A separate process whose application does not start, or starts and has nothing to do. It prints the error or
// 'started', and ends when nothing keeps it alive. Its arguments are <connection, as
// JSON> <reason>.
import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable, Module, type OnModuleInit, Scope } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { Leader } from '../../../lib/nest/leader/leader.decorator.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { LockService } from '../../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';

const [json, reason] = process.argv.slice(2) as [string, string];
const connection = JSON.parse(json) as RedisLockOptions['connection'];
const first = RedisLockModule.forRoot({ connection, connect: 'eager' });

class Tenant {}
@Module({ providers: [{ provide: Tenant, scope: Scope.REQUEST, useFactory: () => new Tenant() }], exports: [Tenant] })
class TenantModule {}

@Injectable()
class Orders {
  @DistributedLock('order')
  async ship(): Promise<void> {}
}

@Injectable({ scope: Scope.REQUEST })
class RelayForEachRequest {
  @Leader('relay')
  async relay(): Promise<void> {}
}

@Injectable()
class FailsLater implements OnModuleInit {
  onModuleInit(): void {
    throw new Error('no mail server');
  }
}

/** Uses locks before another provider fails. */
@Injectable()
class UsesLocks implements OnModuleInit {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  async onModuleInit(): Promise<void> {
    const name = `order:${process.pid}`; // the lock of another process may not have lapsed yet
    await this.locks.acquire(name);
    const waiting = await this.locks.tryAcquire(name, { waitTime: '1s', reentry: false });
    if (waiting !== null) throw new Error('two callers hold the lock');
    await this.locks.withLock('stock', async () => {});
    throw new Error('no mail server');
  }
}

const mailer = {
  provide: 'MAILER',
  inject: [LockService],
  useFactory: async () => {
    await sleep(100); // our connections are open by then
    throw new Error('no mail server');
  },
};

const applications: Record<string, () => { imports: unknown[]; providers?: unknown[] }> = {
  'duplicate names': () => ({
    imports: [first, RedisLockModule.forRoot({ connection, connect: 'eager', keyPrefix: 'other:' })],
  }),
  'options of another module': () => ({
    imports: [first, RedisLockModule.forRoot({ connection, name: 'b', waitTime: 'soon' as never })],
  }),
  'a request-scoped option': () => ({
    imports: [
      first,
      RedisLockModule.forRootAsync({
        name: 'b',
        imports: [TenantModule],
        inject: [Tenant],
        useFactory: () => ({ connection }),
      }),
    ],
  }),
  'a leader for each request': () => ({ imports: [first], providers: [RelayForEachRequest] }),
  'a provider that cannot be created': () => ({ imports: [first], providers: [mailer] }),
  'onModuleInit of a provider': () => ({ imports: [first], providers: [FailsLater] }),
  'onModuleInit, after locks were used': () => ({ imports: [first], providers: [UsesLocks] }),
  'onModuleInit, without a Redis': () => ({
    imports: [RedisLockModule.forRoot({ connection })],
    providers: [FailsLater],
  }),
  nothing: () => ({ imports: [first] }),
};

const { imports, providers = [] } = (applications[reason] as () => { imports: unknown[]; providers?: unknown[] })();
const application = { module: class {}, imports: imports as never, providers: [Orders, ...(providers as never[])] };
await NestFactory.createApplicationContext(application, { logger: false, abortOnError: false }).then(
  () => process.stdout.write('started\n'),
  (error: Error) => process.stdout.write(`${error.message}\n`),
);
