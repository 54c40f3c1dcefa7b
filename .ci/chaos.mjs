// npm run test:chaos: faults in a simulation, against a model, and with real servers.
//   npm run test:chaos -- --seed 123     repeats one schedule of the simulation, and prints it
//   npm run test:chaos -- --long         six times as much of everything that can be repeated, and 20 runs of the guarded register
// Whatever still runs after 30 minutes is ended, and has failed. Other arguments go to jest:
//   npm run test:chaos -- -t 'hands the lock'
import { parseArgs } from 'node:util';
import { finish, limitTo, only, runJest, step } from './jest-run.mjs';
import { provideRedis } from './provide-redis.mjs';

const own = process.argv.slice(2);
const { values, tokens } = parseArgs({
  args: own,
  options: { seed: { type: 'string' }, long: { type: 'boolean' } },
  strict: false,
  tokens: true,
});
for (const token of tokens.filter(({ name }) => name === 'seed' || name === 'long').reverse()) {
  own.splice(token.index, token.name === 'seed' && !token.inlineValue ? 2 : 1);
}

const seed = values.seed ?? process.env.CHAOS_SEED;
if (seed !== undefined && !/^\d+$/.test(String(seed))) {
  console.error(`--seed is ${seed}: give the number of a schedule`);
  process.exit(1);
}
if (seed !== undefined) process.env.CHAOS_SEED = String(seed);
else if (!provideRedis()) process.exit(1);
if (values.long) process.env.CHAOS_LONG = '6';

limitTo(30);
step('scripts', '.ci/embed.mjs');
// Leases on real servers expire even while this machine is busy, so these tests run first, and nothing else runs
// meanwhile.
const WITH_SERVERS = 'test/chaos/(anomalies/|faults/|security/|shutdown/|relays/|flights/flights)';
const COMPUTED = 'test/chaos/(?!anomalies|faults|security|shutdown|relays|flights/flights)';
const run = (title, pattern, workers) =>
  runJest(title, ...only(pattern), '--verbose', '--passWithNoTests', `--maxWorkers=${workers}`, ...own);
if (seed !== undefined) finish(run('schedules', 'test/chaos/simulation/schedules/', 2));
else finish(run('faults', WITH_SERVERS, 3), run('simulation and models', COMPUTED, 2));
