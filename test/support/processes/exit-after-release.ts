// A separate process that holds a lock once, releases it in the background, and ends. Its arguments are <connection as
// JSON> <keyPrefix> <name> <how> <watchdogTimeout>. If <how> is a number, it calls process.exit() after this number of
// turns of the event loop (0: in the same turn). `kill` kills it in the same turn. `close` ends it after close().
import { createLockService } from '../../../lib/service/create-lock-service.js';

const [connection, keyPrefix, name, how, watchdogTimeout] = process.argv.slice(2);
const locks = createLockService({
  connection: JSON.parse(connection),
  keyPrefix,
  release: 'background',
  watchdogTimeout: Number(watchdogTimeout),
});
const exitAfter = (turns: number): unknown => (turns > 0 ? setImmediate(exitAfter, turns - 1) : process.exit());

await locks.withLock('first', { release: 'confirmed' }, () => {}); // so the service has sent its first requests
process.stdout.write('started\n');
await locks.withLock(name, () => {});
if (how === 'kill') process.kill(process.pid, 'SIGKILL');
else if (how === 'close') locks.close().then(() => process.exit());
else exitAfter(Number(how));
