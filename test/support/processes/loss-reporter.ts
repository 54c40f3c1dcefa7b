// A separate process that holds a lock with leases of 30 s, and prints when it is lost. Its arguments are <url>
// <keyPrefix> <name>.
import { createLockService } from '../../../lib/service/create-lock-service.js';

const [url, keyPrefix, name] = process.argv.slice(2);
const locks = createLockService({ connection: url, keyPrefix });
const lease = await locks.acquire(name);
process.stdout.write(`${lease.owner}\n`);
lease.signal.addEventListener('abort', () => process.stdout.write('lost\n'));
setInterval(() => {}, 1_000);
