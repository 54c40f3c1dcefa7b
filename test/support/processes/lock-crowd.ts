// A separate process whose callers lock repeatedly until it gets a SIGTERM. Its arguments are <url> <keyPrefix>
// <callers> <visits>. A visit is a list of nested scopes, and a scope is a list of names. <callers> callers make each
// visit. The last line of its output is how often each visit was made.
import { setTimeout as sleep } from 'node:timers/promises';
import { createLockService } from '../../../lib/service/create-lock-service.js';

const [url, keyPrefix, callers, json] = process.argv.slice(2);
const visits: readonly (readonly (readonly string[])[])[] = JSON.parse(json);
const locks = createLockService({ connection: url, keyPrefix });
const made = visits.map(() => 0);
let over = false;

const enter = ([names, ...inner]: readonly (readonly string[])[]): Promise<void> =>
  locks.withLock(names, async () => {
    await sleep(3);
    if (inner.length > 0) await enter(inner);
  });

const crowd = visits.flatMap((visit, i) =>
  Array.from({ length: Number(callers) }, async () => {
    for (; !over; made[i]++) await enter(visit);
  }),
);
process.once('SIGTERM', async () => {
  over = true;
  await Promise.all(crowd);
  await locks.close();
  process.stdout.write(`${JSON.stringify(made)}\n`);
});
process.stdout.write('started\n');
