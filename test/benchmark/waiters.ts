// How long waiters that are killed, stopped, blocked or cut off hold up the next one, with real processes and a real
// redis-server. `since`: ms between that and the release. Places in line are refreshed three times in 5 s.
//   npm run bench -- waiters [--rounds 3] [--lease 30000]
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { type Fate, measureLostWaiters } from '../chaos/hand-overs/lost-waiters.js';
import { startRedis } from '../support/servers/redis-server.js';
import { median } from './measure/statistics.js';
import { machine } from './report/machine.js';
import { printed } from './report/table.js';

/** The default of waiterTimeout. */
const KEPT = 5_000;
const OWES = 4_200;

const CASES: readonly (readonly [fate: Fate, count: number, since: number])[] = [
  ['nothing', 0, 50],
  ['killed', 1, 50],
  ['killed', 40, 50],
  ['killed', 400, 50],
  ...(['stopped', 'blocked', 'half-open'] as const).flatMap((fate) =>
    [1, 10].flatMap((count) => [50, OWES].map((since) => [fate, count, since] as const)),
  ),
];

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, lease: { type: 'string', default: '30000' } },
});
const [rounds, lease] = [values.rounds, values.lease].map(Number);
if (![rounds, lease].every((value) => Number.isInteger(value) && value > 0))
  throw new Error('--rounds and --lease are whole numbers above 0');

const redis = await startRedis({ args: ['--maxclients', '4000'] });
console.log(`${await machine(redis.client())}, load average ${loadavg()[0].toFixed(2)} at the start\n`);
const rows: string[][] = [];
for (const [fate, count, since] of CASES) {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    process.stderr.write(`${count} ${fate}, round ${round + 1} of ${rounds}\n`);
    times.push(await measureLostWaiters(redis, { fate, count, since, lease, kept: KEPT }));
    await redis.client().flushall();
  }
  rows.push([fate, String(count), String(since), median(times).toFixed(0), Math.max(...times).toFixed(0)]);
}
console.log(
  printed({
    title: `Milliseconds until the next living process holds the lock; leases of ${lease} ms`,
    columns: ['in front', 'how many', 'since', 'median', 'longest'],
    rows,
    notes: [],
  }),
);
await redis.stop();
