// A child process that runs random flows of nested acquisitions and then exits. Its arguments are <url> <keyPrefix>
// <name> <seed> <flows> <plans>. Each line that it prints is an event, as JSON.
import { setTimeout as sleep } from 'node:timers/promises';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { SeededRandom } from '../seeded-random.js';
import { randomPlan } from './plans.js';
import { runPlans } from './run-plans.js';

const [url, keyPrefix, name, seed, flows, plans] = process.argv.slice(2);
const locks = createLockService({ connection: url, keyPrefix });
const chance = new SeededRandom(Number(seed));
const lines: string[] = [];
const world = {
  locks,
  name,
  now: () => Number(process.hrtime.bigint()) / 1e6,
  sleep: (time: number) => sleep(time),
  report: (event: object) => void lines.push(JSON.stringify(event)),
};
const runs = Array.from({ length: Number(flows) }, () => {
  const mine = Array.from({ length: Number(plans) }, () => randomPlan(chance));
  return runPlans(world, mine);
});
await Promise.race([Promise.all(runs), sleep(60_000, undefined, { ref: false })]);
process.stdout.write(`${lines.join('\n')}\n`, () => process.exit());
