import type { ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { LockService } from '../../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';

/** An application context with a RedisLockModule, on the memory backend by default. */
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

/** Options of applications that share a store in memory, as processes share a Redis. */
export function sharedMemory(options: RedisLockOptions = { shutdownTimeout: 10 }): () => RedisLockOptions {
  const store = new MemoryStore();
  return () => ({ ...options, backend: new MemoryBackend({ runtime: nodeRuntime, store }) });
}
