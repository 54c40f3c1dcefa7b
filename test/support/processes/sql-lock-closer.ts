// A separate process that takes a lock in SQL, releases it, prints a line, and closes its service after a second. Its
// arguments are <rowLocks or advisoryLocks> <url>. It ends when nothing keeps it alive.
import { setTimeout as sleep } from 'node:timers/promises';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { SQL_LOCKS, type SqlLocks } from '../../sql/sql-locks.js';

const locks = createLockService({
  backend: SQL_LOCKS[process.argv[2] as SqlLocks]({ url: process.argv[3], createTable: true }),
});
await (await locks.acquire('order')).release();
process.stdout.write('idle\n');
await sleep(1_000);
await locks.close();
