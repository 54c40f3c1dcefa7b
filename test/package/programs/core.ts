// Compiled and run where NestJS is not installed.
import { createLockService, currentLease } from 'nestjs-redis-lock/core';

async function main(): Promise<void> {
  const locks = createLockService({ connection: process.env.REDIS_URL! });
  const name = await locks.withLock('stock', () => currentLease()?.name);
  await locks.close();
  process.stdout.write(JSON.stringify({ name }));
}

void main();
