// What one hand-over of a contended lock costs as more processes wait for it: the real engine with a modelled Redis,
// which is calibrated by crowds of lock services with a real one.
//   npm run bench -- crowd                                  six minutes; writes docs/images/crowd.svg
//   npm run bench -- crowd --calibrate costs.json        the real crowds alone: two and a half quiet minutes
//   npm run bench -- crowd --costs costs.json            the model alone, with these costs
//   npm run bench -- crowd --hold 50 --processes 10,100  other bodies, other crowds
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { simulateCrowd } from '../../chaos/simulation/crowd/crowd-model.js';
import type { Costs } from '../../chaos/simulation/crowd/modelled-server.js';
import type { CrowdFigures, CrowdPlan } from '../../chaos/simulation/crowd/waiting-crowd.js';
import { startRedis } from '../../support/servers/redis-server.js';
import { watchStolenTime } from '../measure/stolen-time.js';
import { figure, percent } from '../report/figures.js';
import { costsOf } from './calibrate.js';
import { picture } from './picture.js';
import { measureCrowd, roundTrip } from './real-crowd.js';

/** The CPU times of the first and the last crowd calibrate the model. The model has to predict everything else. */
const MEASURED = [10, 100, 1_000] as const;
/** The one-way delay between two machines of one data centre, in milliseconds. */
const LATENCY = 0.25;
/** Enough for a percentile, and divisible by the number of processes, because Jain's index would show a remainder. */
const BODIES = 500;
const IMAGE = new URL('../../../docs/images/crowd.svg', import.meta.url);

const HEAD = [
  ['', 'processes', 'ms a hand-over', 'messages', 'commands', 'attempts', 'PINGs'],
  ['server busy', 'ms of clients', 'p99 wait', 'Jain', 'first round: commands, p99', 'recovery', 'commands'],
].flat();

interface Calibration {
  readonly costs: Costs;
  readonly measured: readonly CrowdFigures[];
  readonly stolen: number;
}

const { values } = parseArgs({
  options: {
    calibrate: { type: 'string' },
    costs: { type: 'string' },
    hold: { type: 'string', default: '5' },
    processes: { type: 'string', default: '10,30,100,300,1000,3000' },
  },
});
const hold = Number(values.hold);
const sizes = values.processes.split(',').map(Number);
if (!(hold > 0) || sizes.some((size) => !Number.isInteger(size) || size < 2))
  throw new Error('--hold is a number of milliseconds, --processes are whole numbers above 1: 10,100');

const plan = (processes: number): CrowdPlan => ({
  hold,
  bodies: processes * Math.ceil(BODIES / processes),
  lease: 3_000,
});

// The server's handles do not keep this process alive.
const alive = setInterval(() => {}, 1_000);
const calibration =
  values.costs === undefined ? await calibrate() : (JSON.parse(readFileSync(values.costs, 'utf8')) as Calibration);
if (values.calibrate === undefined) await model(calibration);
else writeFileSync(values.calibrate, JSON.stringify(calibration, undefined, 2));
clearInterval(alive);

async function calibrate(): Promise<Calibration> {
  const stolen = watchStolenTime();
  const server = await startRedis();
  const trip = await roundTrip(server);
  const measured: CrowdFigures[] = [];
  for (const processes of MEASURED) measured.push(await measureCrowd(server, processes, plan(processes)));
  await server.stop();
  return { costs: costsOf(measured[0], measured.at(-1)!, trip), measured, stolen: stolen() };
}

async function model({ costs, measured, stolen }: Calibration): Promise<void> {
  const micro = Object.entries(costs).map(([name, cost]) => `${name} ${figure(cost * 1_000)} µs`);
  console.log(`Costs on this machine (${percent(stolen)} of it went to others): ${micro.join(', ')}\n`);
  console.log('One process with all services, on loopback: the model beside the measurement\n');
  print(HEAD, []);
  for (const real of measured) {
    const { processes } = real;
    print(row('measured', real), []);
    print(row('model', await simulateCrowd({ processes, costs, ...plan(processes), together: true })), []);
  }
  console.log(`\nA fleet: a process with an event loop for each, ${LATENCY} ms one way, bodies of ${hold} ms\n`);
  print(HEAD, []);
  const fleet: CrowdFigures[] = [];
  for (const processes of sizes) {
    const figures = await simulateCrowd({ processes, costs: { ...costs, latency: LATENCY }, ...plan(processes) });
    fleet.push(figures);
    print(row('model', figures), figures.slowest > 2_000 ? ['answers took longer than commandTimeout'] : []);
  }
  writeFileSync(IMAGE, picture(hold, fleet, measured));
}

function row(kind: string, { processes, first, steady, recovery, recoveryCommands }: CrowdFigures): readonly string[] {
  const { each, handOver } = steady;
  return [
    kind,
    String(processes),
    ...[handOver, each.messages, each.commands, each.attempts ?? Number.NaN, each.pings].map(figure),
    percent(each.server / handOver),
    figure(each.clients),
    seconds(steady.p99),
    steady.jain.toFixed(3),
    `${figure(first.each.commands)}, ${seconds(first.p99)}`,
    `${figure(recovery)} ms`,
    figure(recoveryCommands),
  ];
}

function print(cells: readonly string[], notes: readonly string[]): void {
  console.log(`| ${[...cells, ...notes].join(' | ')} |`);
  if (cells === HEAD) console.log(`|${' --- |'.repeat(cells.length)}`);
}

function seconds(milliseconds: number): string {
  return `${figure(milliseconds / 1_000)} s`;
}
