// Run by load-process.ts as a separate process. It keeps locks busy until its input ends, then closes its service and
// exits.
import type { LockBackend } from '../../../lib/backends/lock-backend.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { SQL_LOCKS } from '../../sql/sql-locks.js';
import { HistoryPipe } from '../history.js';
import { Load } from './load.js';
import type { LoadSpec, SqlOptions } from './load-process.js';

function sqlBackend({ locks: which, ...options }: SqlOptions): LockBackend {
  return SQL_LOCKS[which](options);
}

const { process: title, options, crews, sql } = JSON.parse(process.argv[2] ?? '') as LoadSpec;
const locks = createLockService({
  ...options,
  ...(sql && { backend: sqlBackend(sql) }),
  logger: { warn: () => {}, error: () => {} },
});
process.on('unhandledRejection', (reason) => {
  process.stderr.write(`unhandled rejection: ${String(reason)}\n`);
  process.exit(1);
});
const load = new Load(title, locks, crews, new HistoryPipe());
process.stdin.resume().once('end', async () => {
  await load.stop();
  await locks.close();
});
