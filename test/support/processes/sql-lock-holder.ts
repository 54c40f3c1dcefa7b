// A separate process that takes a lock in SQL and holds it until it is killed. With a hold time, it takes the lock
// repeatedly. Its arguments are <rowLocks or advisoryLocks> <url> <name> <watchdogTimeout> [hold time]. It prints a
// line `<event> <fencing token> <time>` at each `in` and `out`.
import { setTimeout as sleep } from 'node:timers/promises';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { SQL_LOCKS, type SqlLocks } from '../../sql/sql-locks.js';

const [which, url, name, watchdogTimeout, holdTime] = process.argv.slice(2);
const locks = createLockService({
  backend: SQL_LOCKS[which as SqlLocks]({ url, createTable: true, connections: 3 }),
  watchdogTimeout: Number(watchdogTimeout),
  logger: { warn: () => {}, error: () => {} },
});
const say = (event: string, token: number) => process.stdout.write(`${event} ${token} ${Date.now()}\n`);

if (holdTime === undefined) {
  const lease = await locks.acquire(name);
  say('in', lease.fencingToken);
  setInterval(() => {}, 1_000);
}
while (holdTime !== undefined) {
  try {
    const lease = await locks.acquire(name);
    say('in', lease.fencingToken);
    await sleep(Math.random() * Number(holdTime));
    if (lease.held) say('out', lease.fencingToken);
    await lease.release();
  } catch {
    await sleep(20); // the lock was lost, or the server is down
  }
}
