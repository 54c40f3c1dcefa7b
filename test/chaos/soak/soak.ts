// npm run suite -- soak: six processes that use 500 names while faults occur, and a verdict. Samples and pictures are
// written to node_modules/.cache/soak.
//   --minutes 120          how long; default: a minute, and once more with leaks, which the verdict must find
//   --seed 7               the faults of another run
//   --leak heap,overlap    what the first process does wrong: heap, handles, keys, overlap
//   --callers 8            callers of each process
//   --pause 700            the longest pause of a caller between two calls, in milliseconds
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { machineTime } from '../history.js';
import { NAMES, PROCESSES } from './names.js';
import { LEAKS, type Leak } from './soak-record.js';
import { type Outcome, type ProcessSample, type ServerSample, SoakRun, type SoakSettings } from './soak-run.js';
import { described, grouped, type SoakVerdict, verdictOf } from './soak-verdict.js';
import { type TimePanel, timeChart } from './time-chart.js';

const FOLDER = 'node_modules/.cache/soak';
const MEGABYTE = 2 ** 20;
const names = Object.values(NAMES).reduce<number>((sum, count) => sum + count, 0);

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string', default: '1' },
    leak: { type: 'string' },
    callers: { type: 'string', default: '8' },
    pause: { type: 'string', default: '700' },
  },
});
const leaks = (values.leak?.split(',') ?? []) as Leak[];
if (!leaks.every((leak) => LEAKS.includes(leak))) throw new Error(`--leak takes ${LEAKS.join(', ')}`);
const settings: SoakSettings = {
  seed: Number(values.seed),
  minutes: Number(values.minutes ?? 1),
  callers: Number(values.callers),
  pause: Number(values.pause),
  leaks,
};
let isFine = (await soak(settings)).complaints.length === 0;
if (values.minutes === undefined && values.leak === undefined && isFine) {
  const { complaints } = await soak({ ...settings, leaks: LEAKS });
  const expected = [/not flat: heap/, /not flat: handles/, /left in Redis.*kept:/, /no overlap: plain:1/];
  const missing = expected.filter((pattern) => !complaints.some((complaint) => pattern.test(complaint)));
  for (const pattern of missing) console.log(`The verdict should have found ${pattern}`);
  isFine = missing.length === 0;
  if (isFine) console.log('All four leaks were found, as they should be.');
}
console.log(isFine ? '1 passed, 0 failed' : '0 passed, 1 failed');
process.exitCode = isFine ? 0 : 1;

async function soak(of: SoakSettings): Promise<SoakVerdict> {
  const what = `${PROCESSES} processes, ${names} names, seed ${of.seed}${of.leaks.length > 0 ? `, leaks ${of.leaks}` : ''}`;
  console.log(`\n── ${of.minutes} min: ${what}`);
  const began = machineTime();
  const run = await SoakRun.start(of, (line) => console.log(line));
  let outcome: Outcome;
  try {
    await run.run();
    outcome = await run.finish();
  } catch (error) {
    await run.abandon();
    throw error;
  }
  const time = machineTime() - began;
  const verdict = verdictOf(outcome, of.minutes * 60_000);
  print(outcome, verdict, time);
  console.log(
    `Samples, picture and histories: ${write(`${of.seed}${of.leaks.length > 0 ? '-leaks' : ''}`, what, outcome)}`,
  );
  return verdict;
}

function print(
  { counts, faults, samples, server }: Outcome,
  { flat, short, growth, complaints }: SoakVerdict,
  time: number,
) {
  const cpu = [...grouped(samples, ({ process }) => process).values()].reduce((sum, own) => sum + own.at(-1)!.cpu, 0);
  const own = process.cpuUsage();
  const cores = (cpu + (server.at(-1)?.cpu ?? 0) + (own.user + own.system) / 1_000) / time;
  console.log(`
${(time / 60_000).toFixed(1)} min, ${counts.chapters} chapters, ${faults.length} faults, ${cores.toFixed(2)} cores
${counts.served} grants, ${counts.refused} refused, ${counts.lost} lost; ${counts.flights} calls of single flights
${flat.map((series) => `  ${described(series)}`).join('\n')}
  ${short} series of processes that lived too short are not judged. The limit is +${growth * 100} %.`);
  for (const complaint of complaints.slice(0, 20)) console.log(`✗ ${complaint}`);
  if (complaints.length > 20) console.log(`✗ and ${complaints.length - 20} more`);
  const verdict = complaints.length === 0 ? 'sound: flat, no overlap, nothing left behind' : 'NOT SOUND';
  console.log(`Verdict: ${verdict}`);
}

/** @returns the folder */
function write(title: string, what: string, { began, samples, server, faults, broken }: Outcome): string {
  const folder = join(FOLDER, title);
  mkdirSync(folder, { recursive: true });
  const minute = ({ at }: { readonly at: number }) => (at - began) / 60_000;
  const csv = (rows: readonly (ProcessSample | ServerSample)[]) => {
    const columns = Object.keys(rows[0] ?? {}).filter((column) => column !== 'at');
    const lines = rows.map((row) => [
      minute(row).toFixed(3),
      ...columns.map((column) => row[column as keyof typeof row]),
    ]);
    return `${[['minute', ...columns], ...lines].map((cells) => cells.join(',')).join('\n')}\n`;
  };
  writeFileSync(join(folder, 'processes.csv'), csv(samples));
  writeFileSync(join(folder, 'redis.csv'), csv(server));
  writeFileSync(
    join(folder, 'faults.csv'),
    `minute,fault\n${faults.map((each) => `${minute(each).toFixed(3)},"${each.what}"\n`).join('')}`,
  );
  broken.forEach((records, i) => {
    writeFileSync(join(folder, `broken-${i + 1}.json`), JSON.stringify(records));
  });
  const resting = samples.filter((each) => each.resting);
  const bySlot = grouped(resting, ({ process }) => process.split('.')[0]);
  const lines = (value: (sample: ProcessSample) => number) =>
    [...bySlot].map(([name, own]) => ({ name, points: own.map((each) => [minute(each), value(each)] as const) }));
  const ofServer = (name: string, value: (sample: ServerSample) => number) => ({
    name,
    points: server.filter((each) => each.resting).map((each) => [minute(each), value(each)] as const),
  });
  const panels: TimePanel[] = [
    {
      title: 'Heap after gc',
      unit: 'MB; a process that was killed starts again',
      lines: lines(({ heap }) => heap / MEGABYTE),
    },
    { title: 'Resident memory', unit: 'MB', lines: lines(({ resident }) => resident / MEGABYTE) },
    {
      title: 'Handles',
      unit: 'open files, sockets and servers of a process',
      lines: lines(({ handles }) => handles),
    },
    {
      title: 'Redis',
      unit: 'keys, connections and subscriptions between chapters, memory in MB',
      lines: [
        ofServer('keys', ({ keys }) => keys),
        ofServer('connections', ({ connections }) => connections),
        ofServer('subscriptions', ({ subscriptions }) => subscriptions),
        ofServer('memory', ({ memory }) => memory / MEGABYTE),
      ],
    },
  ];
  writeFileSync(join(folder, 'soak.svg'), timeChart(what, panels, faults.map(minute)));
  return folder;
}
