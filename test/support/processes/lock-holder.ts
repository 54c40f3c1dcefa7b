// A separate process that holds a lock until it is killed. Its arguments are <url> <keyPrefix> <name>
// <watchdogTimeout>.
import { createLockService } from '../../../lib/service/create-lock-service.js';

const [url, keyPrefix, name, watchdogTimeout] = process.argv.slice(2);
const locks = createLockService({ connection: url, keyPrefix, watchdogTimeout: Number(watchdogTimeout) });
const lease = await locks.acquire(name);
process.stdout.write(`${lease.owner}\n`);
setInterval(() => {}, 1_000);
