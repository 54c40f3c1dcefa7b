// A separate process that stands for election and prints when it leads. Its arguments are <url> <keyPrefix> <name>
// <watchdogTimeout>.
import { createLockService } from '../../../lib/service/create-lock-service.js';

const [url, keyPrefix, name, watchdogTimeout] = process.argv.slice(2);
const locks = createLockService({ connection: url, keyPrefix, watchdogTimeout: Number(watchdogTimeout) });
locks.lead(name, {
  async onElected({ signal }) {
    process.stdout.write('leads\n');
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  },
  onRevoked: () => void process.stdout.write('revoked\n'),
});
process.once('SIGTERM', () => void locks.close().then(() => process.exit()));
await locks.connect();
process.stdout.write('stands\n');
