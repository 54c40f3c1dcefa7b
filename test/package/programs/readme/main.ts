// The application that README.md describes, block by block, served over HTTP by Express or Fastify.
import 'reflect-metadata';
import { Controller, Get, type INestApplication, Module, Param, type Type } from '@nestjs/common';
import { NestFactory, REQUEST } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { DistributedLock, LockExceptionFilter, LockService, RedisLockModule } from 'nestjs-redis-lock';
import { blocks } from './blocks.js';

@Controller('orders')
class OrdersController {
  @Get(':id')
  @DistributedLock({ key: 'order:#<args[0]>', waitTime: 0 })
  async show(@Param('id') id: string): Promise<{ id: string }> {
    return { id };
  }
}

const classes = Object.values(blocks)
  .flatMap((block): unknown[] => Object.values(block))
  .filter((value): value is Type => /^class\b/.test(String(value)));
const isModule = (type: Type) => Reflect.hasMetadata('imports', type);

@Module({
  imports: classes.filter(isModule),
  providers: classes.filter((type) => !isModule(type)),
  controllers: [OrdersController],
})
class Shop {}

/** Its options depend on the request, so it must not start. */
@Module({
  imports: [RedisLockModule.forRootAsync({ inject: [REQUEST], useFactory: () => ({ backend: 'memory' as const }) })],
})
class ShopOfTenants {}

async function whyNotStarted(module: Type): Promise<string> {
  try {
    await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
    return 'it started';
  } catch (error) {
    return String(error);
  }
}

async function request(url: string): Promise<{ status: number; retryAfter: string | null }> {
  const { status, headers } = await fetch(url);
  return { status, retryAfter: headers.get('retry-after') };
}

async function main(): Promise<void> {
  const adapter = process.env.PLATFORM === 'fastify' ? new FastifyAdapter() : new ExpressAdapter();
  const app: INestApplication = await NestFactory.create(Shop, adapter, { logger: false });
  app.useGlobalFilters(new LockExceptionFilter());
  app.enableShutdownHooks();
  await app.listen(0, '127.0.0.1');
  const locks = app.get(LockService);

  const ran: string[] = [];
  for (const [place, block] of Object.entries(blocks)) {
    if (!('run' in block)) continue;
    await block.run({ app, locks });
    ran.push(place);
  }

  const url = `${await app.getUrl()}/orders/42`;
  const lease = await locks.acquire('order:42');
  const busy = await request(url);
  await lease.release();
  const free = await request(url);
  await app.close();
  const refused = /^LockConfigurationError: .* depend on REQUEST/.test(await whyNotStarted(ShopOfTenants));
  process.stdout.write(
    JSON.stringify({ ran, busy: busy.status, retryAfter: Number(busy.retryAfter) > 0, free: free.status, refused }),
  );
}

void main();
