// npm run bench                    all workloads; writes RESULTS.md and results.svg
// npm run bench -- seq par         these alone; writes nothing
//   --quick    rough figures: fewer, shorter rounds; writes nothing
//   --alone    this library and the floor, without the peers; writes nothing
import { parseArgs } from 'node:util';
import { startRedis } from '../support/servers/redis-server.js';
import type { Contestant } from './contestants/contestant.js';
import { CONTESTANTS, PEERS } from './contestants/contestants.js';
import { redisson } from './contestants/redisson.js';
import { startNodeCrew } from './crew/node-crew.js';
import { prepareRedisson, startRedissonCrew } from './crew/redisson-crew.js';
import { ServerMeter } from './measure/server-meter.js';
import { watchStolenTime } from './measure/stolen-time.js';
import { percent } from './report/figures.js';
import { machine } from './report/machine.js';
import { writeResults } from './report/results.js';
import { printed, printedBar } from './report/table.js';
import type { Bench, Outcome } from './workloads/workload.js';
import { WORKLOADS } from './workloads/workloads.js';

const { values: flags, positionals: names } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false }, alone: { type: 'boolean', default: false } },
});
const workloads = WORKLOADS.filter(({ name }) => names.length === 0 || names.includes(name));
const unknown = names.filter((name) => !WORKLOADS.some((workload) => workload.name === name));
if (unknown.length > 0) {
  console.error(
    `There is no workload ${unknown.join(', ')}; there are ${WORKLOADS.map(({ name }) => name).join(', ')}`,
  );
  process.exit(1);
}

const server = await startRedis();
try {
  const redis = server.client();
  const absent = new Map<Contestant, string>();
  const why = flags.alone ? 'left out' : prepareRedisson();
  if (why !== undefined) absent.set(redisson, why);
  if (flags.alone) for (const peer of PEERS) absent.set(peer, 'left out');
  const contestants = CONTESTANTS.filter((contestant) => !absent.has(contestant));
  const bench: Bench = {
    meter: new ServerMeter(redis),
    contestants,
    quick: flags.quick,
    crew: (contestant, size, connections) =>
      contestant === redisson
        ? startRedissonCrew(server.port)
        : startNodeCrew(contestant, server.port, size, connections),
    progress,
  };

  const where = await machine(redis);
  console.log(`${where}\n`);
  const outcomes: Outcome[] = [];
  const stolen: string[] = [];
  for (const workload of workloads) {
    const stolenSince = watchStolenTime();
    const outcome = await workload.run(bench);
    outcomes.push(outcome);
    stolen.push(`${workload.name} ${percent(stolenSince())}`);
    progress('');
    for (const table of outcome.tables) console.log(printed(table));
    console.log(`${outcome.bars.map(printedBar).join('\n')}\n`);
    console.log(`CPU time that the machine's host gave to others meanwhile: ${stolen.at(-1)}\n`);
    await redis.flushall();
  }
  const complete = names.length === 0 && !flags.quick && !flags.alone;
  const left = [...absent].map(([{ name }, reason]) => `${name}: not here, because ${reason}`);
  if (complete) writeResults(where, stolen, contestants, left, outcomes);
  const missed = outcomes.flatMap(({ bars }) => bars).filter(({ met }) => !met);
  console.log(missed.length === 0 ? 'All promises are kept.' : `Not kept:\n${missed.map(printedBar).join('\n')}`);
} finally {
  await server.stop();
}

/** Prints a line that the next one overwrites. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
}
