import type { ModuleMetadata, Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockService, RedisLockModule } from 'nestjs-redis-lock';

/** The arguments of a block's `run`: the application that consists of its exported classes, and its locks. */
export interface Running {
  readonly app: TestingModule;
  readonly locks: LockService;
}

type Exports = Readonly<Record<string, unknown>>;

/** Starts the exported modules, controllers and providers of a block with the Redis server of `url`. */
export async function startBlock(exports: Exports, url: string): Promise<Running> {
  const classes = Object.values(exports).filter((value): value is Type => /^class\b/.test(String(value)));
  const has = (key: string) => classes.filter((type) => Reflect.hasMetadata(key, type));
  const modules = [...new Set([...has('imports'), ...has('providers')])];
  const ofModules = modules.flatMap((type) => Reflect.getMetadata('controllers', type) ?? []);
  const controllers = has('path').filter(
    (type) => !Reflect.hasMetadata('websockets:is_gateway', type) && !ofModules.includes(type),
  );
  const metadata: ModuleMetadata = {
    imports: modules.length > 0 ? modules : [RedisLockModule.forRoot({ connection: url, shutdownTimeout: 0 })],
    controllers,
    providers: modules.length > 0 ? [] : classes.filter((type) => !controllers.includes(type)),
  };
  const app = await Test.createTestingModule(metadata).compile();
  app.useLogger(false);
  await app.init();
  return { app, locks: app.get(LockService, { strict: false }) };
}
