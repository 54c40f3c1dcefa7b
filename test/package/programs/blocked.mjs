// Blocks the event loop for longer than a lease with keepWhileBlocked, and prints whether the lock was kept, or why the
// service was refused.
import { createLockService } from 'nestjs-redis-lock/core';

(async () => {
  const locks = createLockService({
    connection: process.env.REDIS_URL,
    watchdogTimeout: '2s',
    keepWhileBlocked: '1m',
    logger: { warn: () => {}, error: () => {} },
  });
  const block = (lease) => {
    for (const end = performance.now() + 5_000; performance.now() < end; );
    return lease.held;
  };
  const result = await locks.withLock('blocked', async (lease) => ({ held: block(lease) })).catch((error) => error);
  console.log(JSON.stringify(result instanceof Error ? { refused: result.message } : result));
  await locks.close();
})();
