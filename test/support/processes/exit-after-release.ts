// A separate process that holds a lock once, releases it in the background, and ends: <connection as JSON> <keyPrefix>
// <name> <how> <watchdogTimeout>. It ends by process.exit() after so many turns of the event loop (0: in the same turn),
// by `kill` in the same turn, or after `close`.
import { createLockService } from '../../../lib/service/create-lock-service.js';

const [connection, keyPrefix, name, how, watchdogTimeout] = process.argv.slice(2);
const locks = createLockService({
  connection: JSON.parse(connection),
  keyPrefix,
  release: 'background',
  watchdogTimeout: Number(watchdogTimeout),
});
const exitAfter = (turns: number): unknown => (turns > 0 ? setImmediate(exitAfter, turns - 1) : process.exit());

await locks.withLock('first', { release: 'confirmed' }, () => {}); // the service has asked what it asks once
process.stdout.write('started\n');
await locks.withLock(name, () => {});
if (how === 'kill') process.kill(process.pid, 'SIGKILL');
else if (how === 'close') locks.close().then(() => process.exit());
else exitAfter(Number(how));
