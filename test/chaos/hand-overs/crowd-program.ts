// Run by lost-waiters.ts, as a separate process: several services that wait for one lock, with a connection and a place
// in its line each.
import { createLockService, type RedisLockOptions } from '../../../lib/core.js';

export interface CrowdSpec {
  readonly process: string;
  readonly options: RedisLockOptions;
  readonly services: number;
  readonly lock: string;
}

const { options, services, lock }: CrowdSpec = JSON.parse(process.argv[2] ?? '');
const crowd = Array.from({ length: services }, () =>
  createLockService({ ...options, logger: { warn: () => {}, error: () => {} } }),
);
for (const service of crowd) service.withLock(lock, async () => {}).catch(() => {});

// A number that it reads is for how many ms it blocks its event loop.
process.stdin.on('data', (line) => {
  const end = performance.now() + Number(line);
  while (performance.now() < end);
});
process.stdin.once('end', () => process.exit(0));
