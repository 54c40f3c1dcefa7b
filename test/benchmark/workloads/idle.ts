import { setTimeout as delay } from 'node:timers/promises';
import { type Contestant, keyOf } from '../contestants/contestant.js';
import { thisLibrary } from '../contestants/this-library.js';
import type { Crew } from '../crew/crew.js';
import { median } from '../measure/statistics.js';
import { count, figure, percent } from '../report/figures.js';
import { type Setting, start } from './contest.js';
import { type Bar, type Bench, contenders, type Workload } from './workload.js';

const WAITERS = 2_000;
const SETTING: Setting = { name: 'idle', processes: 1, connections: 2, callers: 100, keys: 'one', body: 0 };
/** Milliseconds from the arrival of the waiters until they are measured. */
const SETTLING = 1_000;
/** Milliseconds after the release. Callers that are not served by then count as having taken this long. */
const PATIENCE = 10_000;
/**
 * How often a contestant that serves all of them in time repeats it, because short measurements are easily disturbed.
 */
const DRAINS = 5;

interface Idle {
  /** Shares of one core. */
  readonly clientCpu: number;
  readonly serverCpu: number;
  readonly commandsPerSecond: number;
  readonly served: number;
  /** Milliseconds. */
  readonly drained: number;
}

export const idle: Workload = {
  name: 'idle',
  async run(bench) {
    const results = new Map<Contestant, Idle>();
    for (const contestant of contenders(bench)) {
      bench.progress(`idle: ${contestant.name}`);
      try {
        results.set(contestant, await wait(bench, contestant));
      } catch (error) {
        console.error(`idle: ${contestant.name} drops out: ${(error as Error).message}`);
      }
    }
    const rows = [...results].map(([{ name }, result]) => [
      name,
      percent(result.clientCpu),
      percent(result.serverCpu),
      count(result.commandsPerSecond),
      result.served < WAITERS
        ? `> ${PATIENCE / 1e3} s (${count(result.served)} served)`
        : `${figure(result.drained)} ms`,
    ]);
    const columns = ['', 'client CPU', 'server CPU', 'commands executed/s', `all ${count(WAITERS)} served within`];
    return {
      tables: [
        {
          title: `idle: ${count(WAITERS)} callers wait for 5 s for a held lock, then it is released`,
          columns,
          rows,
          notes: [`Who serves all within ${PATIENCE / 1e3} s does so ${DRAINS} times; the median counts.`],
        },
      ],
      bars: barsOf(results),
      panels: [
        {
          title: `${count(WAITERS)} callers wait: time to serve all after the release`,
          unit: `ms, less is better; ${count(PATIENCE)} means not all were served by then`,
          values: [...results].map(([{ name }, { drained }]) => ({ name, value: drained })),
        },
      ],
    };
  },
};

async function wait(bench: Bench, contestant: Contestant): Promise<Idle> {
  const duration = bench.quick ? 2_000 : 5_000;
  const crew = await start(bench, SETTING, contestant);
  try {
    await gather(crew, keyOf(contestant, 'idle'));
    const { result, load } = await bench.meter.during(() => crew.run('watch', duration));
    const drains = [await drain(crew)];
    while (drains[0].inTime && drains.length < DRAINS) {
      await gather(crew, keyOf(contestant, `idle:${drains.length}`));
      drains.push(await drain(crew));
      if (!drains[drains.length - 1].inTime) break; // its waiters would disturb the next measurement
    }
    return {
      clientCpu: result[0].cpu / 1e3 / duration,
      serverCpu: load.cpu / 1e3 / duration,
      commandsPerSecond: (load.commands / duration) * 1e3,
      served: drains[0].served,
      drained: median(drains.map(({ elapsed }) => elapsed)),
    };
  } finally {
    crew.close();
  }
}

async function gather(crew: Crew, key: string): Promise<void> {
  await crew.run('gather', key, WAITERS);
  await delay(SETTLING);
}

async function drain(crew: Crew) {
  const [{ served, elapsed }] = await crew.run('drain', PATIENCE);
  const inTime = served === WAITERS;
  return { served, inTime, elapsed: inTime ? elapsed : PATIENCE };
}

function barsOf(results: ReadonlyMap<Contestant, Idle>): Bar[] {
  const ours = results.get(thisLibrary);
  const { clientCpu = Number.NaN, commandsPerSecond = Number.NaN, drained = Number.NaN } = ours ?? {};
  const peers = [...results].filter(([contestant]) => contestant !== thisLibrary).map(([, result]) => result.drained);
  const share = peers.length === 0 ? Number.NaN : drained / Math.min(...peers);
  return [
    { promise: 'idle: ≤ 1 % CPU while waiting', measured: percent(clientCpu), met: clientCpu <= 0.01 },
    {
      promise: 'idle: no commands but renewals',
      measured: `${figure(commandsPerSecond)}/s`,
      met: commandsPerSecond === 0,
    },
    {
      promise: 'idle: all served in ≤ 1/100 of the best peer’s time',
      measured: `1/${count(1 / share)}`,
      met: ours?.served === WAITERS && share <= 0.01,
    },
  ];
}
