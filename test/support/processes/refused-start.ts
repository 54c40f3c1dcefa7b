// A separate process whose application does not start. It prints the error, and ends when nothing keeps it alive. Its
// arguments are <url> <reason>.
import { Injectable, Module, Scope } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';

const [url, reason] = process.argv.slice(2);
const connection = url as string;
const first = RedisLockModule.forRoot({ connection, connect: 'eager' });

class Tenant {}
@Module({ providers: [{ provide: Tenant, scope: Scope.REQUEST, useFactory: () => new Tenant() }], exports: [Tenant] })
class TenantModule {}

@Injectable()
class Orders {
  @DistributedLock('order')
  async ship(): Promise<void> {}
}

const imports: Record<string, () => unknown[]> = {
  'duplicate names': () => [first, RedisLockModule.forRoot({ connection: `${connection}/1`, connect: 'eager' })],
  'options of another module': () => [
    first,
    RedisLockModule.forRoot({ connection, name: 'b', waitTime: 'soon' as never }),
  ],
  'a request-scoped option': () => [
    first,
    RedisLockModule.forRootAsync({
      name: 'b',
      imports: [TenantModule],
      inject: [Tenant],
      useFactory: () => ({ connection }),
    }),
  ],
};

const application = { module: class {}, imports: imports[reason as string]?.() as never, providers: [Orders] };
await NestFactory.createApplicationContext(application, { logger: false, abortOnError: false }).then(
  () => process.stdout.write('started\n'),
  (error: Error) => process.stdout.write(`${error.message}\n`),
);
