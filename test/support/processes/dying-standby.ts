// A separate process whose standby thread dies, and then another one keeps its lock. Its argument is a URL. It prints a line of
// JSON for each thing that happens.
import type { Worker } from 'node:worker_threads';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { StandbyThread } from '../../../lib/standby/standby-thread.js';
import { blockEventLoop } from '../runtime/block-event-loop.js';
import { until } from '../until.js';

const [url] = process.argv.slice(2);
const say = (what: object) => process.stdout.write(`${JSON.stringify(what)}\n`);
const locks = createLockService({
  connection: url,
  watchdogTimeout: 3_000,
  commandTimeout: 300,
  keepWhileBlocked: '30s',
  logger: { warn: (warning) => say({ warning }), error: (error) => say({ error }) },
});
await locks.withLock('a', async (lease) => {
  const thread = Reflect.get(StandbyThread, 'current') as { worker: Worker | undefined; hasLoaded: boolean };
  const first = thread.worker;
  // As by an error that nobody catches.
  first?.emit('error', new Error('out of memory'));
  await first?.terminate();
  await until(() => thread.hasLoaded && thread.worker !== undefined && thread.worker !== first);
  await new Promise((resolve) => setTimeout(resolve, 300));
  blockEventLoop(8_000);
  say({ held: lease.held });
});
await locks.close();
say({ closed: true });
