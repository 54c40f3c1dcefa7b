// A separate process that takes a row lock, gives it back, prints a line, and closes its service after a second: <url>.
// It ends when nothing keeps it alive.
import { setTimeout as sleep } from 'node:timers/promises';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { rowLocks } from '../../../lib/sql.js';

const locks = createLockService({ backend: rowLocks({ url: process.argv[2], createTable: true }) });
await (await locks.acquire('order')).release();
process.stdout.write('idle\n');
await sleep(1_000);
await locks.close();
