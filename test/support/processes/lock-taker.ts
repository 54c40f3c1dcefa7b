// A separate process that waits for a lock, holds it for a while, and records in Redis whether it holds it. Its
// arguments are <url> <keyPrefix> <name> <ms>.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createLockService } from '../../../lib/service/create-lock-service.js';

const [url, keyPrefix, name, time] = process.argv.slice(2);
const redis = new Redis(url);
const locks = createLockService({ connection: url, keyPrefix });
await redis.set(`inside:${name}`, 0);
process.stdout.write('waits\n');
await locks.withLock(name, async () => {
  await redis.set(`inside:${name}`, 1);
  await sleep(Number(time));
  await redis.set(`inside:${name}`, 0);
});
await locks.close();
redis.disconnect();
