import { simulateCrowd } from '../../chaos/simulation/crowd/crowd-model.js';
import type { Costs } from '../../chaos/simulation/crowd/modelled-server.js';
import type { CrowdFigures, CrowdPlan } from '../../chaos/simulation/crowd/waiting-crowd.js';
import { startRedis } from '../../support/servers/redis-server.js';
import { watchStolenTime } from '../measure/stolen-time.js';
import { figure, percent } from '../report/figures.js';
import type { Table } from '../workloads/workload.js';
import { costsOf, measureMessages, measurePlaces, measureSubscriptions } from './calibrate.js';
import { measureCrowd, roundTrip } from './real-crowd.js';
import { turnOf, waitsOf } from './services.js';

/** The first crowd calibrates the model. The model has to predict everything else. */
const MEASURED = [10, 100] as const;
/** The one-way delay between two machines of one data centre, in milliseconds. */
const LATENCY = 0.25;
/** Enough for a percentile, and divisible by the number of processes, because Jain's index would show a remainder. */
const BODIES = 500;

const COLUMNS = [
  ...['', 'processes', 'ms from body to body', 'refused', 'Jain', 'commands', 'messages', 'PINGs', 'Redis busy'],
  ...['client CPU ms', 'p99 wait', 'first round: commands', 'p99', 'recovery ms', 'commands'],
];

export interface Calibration {
  readonly costs: Costs;
  readonly measured: readonly CrowdFigures[];
  readonly stolen: number;
}

/** The figures of both kinds of callers. */
export interface Fleet {
  readonly patient: readonly CrowdFigures[];
  readonly givingUp: readonly CrowdFigures[];
}

type Progress = (text: string) => void;

/** Measures with a real server what the model needs, and what it has to predict. */
export async function calibrate(body: number, progress: Progress): Promise<Calibration> {
  const stolen = watchStolenTime();
  const server = await startRedis();
  const trip = await roundTrip(server);
  progress('calibrates the model: messages');
  const messages = await measureMessages(server);
  progress('calibrates the model: places');
  const places = await measurePlaces(server);
  const subscriptions = await measureSubscriptions(server);
  const measured: CrowdFigures[] = [];
  for (const processes of MEASURED) {
    progress(`calibrates the model: ${processes} services in one process`);
    measured.push(await measureCrowd(server, processes, planOf(processes, body)));
  }
  await server.stop();
  return { costs: costsOf(measured[0], messages, places, subscriptions, trip), measured, stolen: stolen() };
}

/** One process with all services: the model beside the measurement. */
export async function checkModel({ costs, measured, stolen }: Calibration, body: number): Promise<Table> {
  const rows: (readonly string[])[] = [];
  for (const real of measured) {
    const { processes } = real;
    rows.push(row('measured', real));
    rows.push(row('model', await simulateCrowd({ processes, costs, ...planOf(processes, body), together: true })));
  }
  const micro = Object.entries(costs).map(([name, cost]) => `${name} ${figure(cost * 1_000)} µs`);
  return {
    title: 'How reliable the model is: one process with all services, on loopback',
    columns: COLUMNS,
    rows,
    notes: [`Costs on this machine (${percent(stolen)} of it went to others): ${micro.join(', ')}.`],
  };
}

/** A fleet: a process with an event loop for each service. */
export async function simulateFleet(sizes: readonly number[], costs: Costs, body: number, progress: Progress) {
  const simulate = async (giveUp: boolean) => {
    const fleet: CrowdFigures[] = [];
    for (const processes of sizes) {
      progress(`simulates ${processes} processes, ${giveUp ? 'giving-up' : 'patient'}`);
      const plan = planOf(processes, body, giveUp);
      const figures = await simulateCrowd({ processes, costs: { ...costs, latency: LATENCY }, ...plan });
      if (figures.slowest > 2_000)
        console.error('Answers took longer than commandTimeout: the model is too optimistic');
      fleet.push(figures);
    }
    return fleet;
  };
  return { patient: await simulate(false), givingUp: await simulate(true) } satisfies Fleet;
}

export function fleetTable({ patient, givingUp }: Fleet, body: number): Table {
  return {
    title: `A simulated fleet: ${LATENCY} ms one way, bodies of ${body} ms`,
    columns: COLUMNS,
    rows: [...patient.map((each) => row('patient', each)), ...givingUp.map((each) => row('giving up', each))],
    notes: [
      'Commands, messages, PINGs and CPU: for each body. First round: from the moment when all processes ask, until each of them, or as many callers, had the lock.',
      'Recovery: from the end of the lease of a dead holder to the next body, and the commands since its death.',
    ],
  };
}

function planOf(processes: number, hold: number, giveUp = false): CrowdPlan {
  const plan = { hold, bodies: processes * Math.ceil(BODIES / processes), lease: 3_000 };
  if (!giveUp) return plan;
  const turn = turnOf(processes, hold);
  const [least, most] = waitsOf(turn);
  return { ...plan, giveUp: { least, most, pause: turn } };
}

function row(kind: string, { processes, first, steady, recovery, recoveryCommands }: CrowdFigures): readonly string[] {
  const { each, handOver } = steady;
  return [
    kind,
    String(processes),
    figure(handOver),
    percent(steady.refused),
    steady.jain.toFixed(3),
    ...[each.commands, each.messages, each.pings].map(figure),
    percent(each.server / handOver),
    figure(each.clients),
    seconds(steady.p99),
    figure(first.each.commands),
    seconds(first.p99),
    figure(recovery),
    figure(recoveryCommands),
  ];
}

function seconds(milliseconds: number): string {
  return `${figure(milliseconds / 1_000)} s`;
}
