// A separate process that takes locks again and again, and blocks its event loop inside them. It prints a line of JSON when it
// enters and when it leaves, with the time of a clock that all processes of the machine share. Its arguments are <url> <lease> <names>
// <longest block, in leases> <keepWhileBlocked>.
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { blockEventLoop } from '../runtime/block-event-loop.js';

const [url, lease, names, longest, keepWhileBlocked] = process.argv.slice(2);
const watchdogTimeout = Number(lease);
const say = (what: object) => process.stdout.write(`${JSON.stringify(what)}\n`);
const now = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;
const locks = createLockService({
  connection: url,
  watchdogTimeout,
  commandTimeout: 1_000,
  keepWhileBlocked: Number(keepWhileBlocked),
  waitTime: '30s',
  onLost: 'warn',
  logger: { warn: () => {}, error: () => {} },
});
await locks.started();
for (;;) {
  const name = `chaos:${Math.floor(Math.random() * Number(names))}`;
  await locks
    .withLock(name, async (lock) => {
      const at = now();
      if (!lock.held) return;
      say({ enters: name, token: lock.fencingToken, at });
      blockEventLoop(watchdogTimeout * (0.5 + Math.random() * (Number(longest) - 0.5)));
      const until = now();
      say({ leaves: name, token: lock.fencingToken, at: until, held: lock.held });
    })
    .catch((error: Error) => say({ failed: error.name }));
  await new Promise((resolve) => setTimeout(resolve, 5));
}
