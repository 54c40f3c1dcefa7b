import type { ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { LockService } from '../../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';

/** An application context with a RedisLockModule, on the memory backend unless told otherwise. */
export async function startApp(
  { imports = [], ...metadata }: ModuleMetadata,
  options: RedisLockOptions = { backend: 'memory', shutdownTimeout: 10 },
): Promise<TestingModule & { locks: LockService }> {
  const app = await Test.createTestingModule({
    imports: [RedisLockModule.forRoot(options), ...imports],
    ...metadata,
  }).compile();
  await app.init();
  return Object.assign(app, { locks: app.get(LockService) });
}
