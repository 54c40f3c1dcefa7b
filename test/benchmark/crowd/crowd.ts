// What one hand-over of a contended lock costs as more services wait for it, and what callers who give up cost.
//   npm run bench -- crowd                     everything, a quarter of an hour; writes docs/internals/images/crowd.svg
// A part alone writes nothing. Real services, in processes of their own, beside peers, with one real redis-server:
//   --services 4,16  --bodies 5  --kinds patient,giving-up  --idle  --busy    these cells; default: all kinds and states
//   --seconds 1  --rounds 3                    of each contestant in a cell, in turns
//   --contestants ours,redis-semaphore         default: all of ours, redis-semaphore, redlock-universal, redisson;
//                                              least-line is what any line costs that grants by a message
//   --base 6046f5f4                            also this library at another commit
// The engine with a modelled Redis, which a real crowd calibrates:
//   --simulated 100,1000,3000  --hold 5        these numbers of processes, these bodies
//   --calibrate costs.json, --costs costs.json    write the costs of this machine, or use them
// --built uses the library in dist as it is, --markdown prints tables for documents, --picture writes
// docs/internals/images/crowd.svg with what was measured.
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { startRedis } from '../../support/servers/redis-server.js';
import type { Contestant } from '../contestants/contestant.js';
import { leastLine } from '../contestants/least-line.js';
import { redisson } from '../contestants/redisson.js';
import { startNodeCrew } from '../crew/node-crew.js';
import { prepareRedisson, startRedissonServices } from '../crew/redisson-crew.js';
import { watchStolenTime } from '../measure/stolen-time.js';
import { buildBase } from '../pairs/build-base.js';
import { libraryAt } from '../pairs/library-at.js';
import { figure, percent } from '../report/figures.js';
import { machine } from '../report/machine.js';
import { markdown, printed } from '../report/table.js';
import type { Table } from '../workloads/workload.js';
import { picture } from './picture.js';
import { POLLERS } from './pollers.js';
import {
  type Cell,
  type CellFigures,
  type Entrant,
  KINDS,
  type Kind,
  measureServices,
  servicesTables,
} from './services.js';
import { type Calibration, calibrate, checkModel, fleetTable, simulateFleet } from './simulated.js';

const SERVICES = [2, 4, 16, 40];
const BODIES = [0, 1, 5, 20];
/** Where only services or only bodies vary, the other is this. */
const [USUAL_SERVICES, USUAL_BODY] = [16, 5];
const IMAGE = new URL('../../../docs/internals/images/crowd.svg', import.meta.url);
const WORKER = new URL('./service-worker.ts', import.meta.url);
const OURS = 'ours';
/**
 * Milliseconds of warm-up, the same for all. A JVM compiles for as long as this on two cores, and is several times slower
 * until then. Node.js needs it as well: after 1.5 s, this library spent twice the CPU time on each body.
 */
const WARM_UP = 15_000;

const { values } = parseArgs({
  options: {
    services: { type: 'string' },
    bodies: { type: 'string' },
    kinds: { type: 'string' },
    idle: { type: 'boolean' },
    busy: { type: 'boolean' },
    seconds: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '3' },
    contestants: { type: 'string' },
    base: { type: 'string' },
    simulated: { type: 'string' },
    hold: { type: 'string', default: '5' },
    calibrate: { type: 'string' },
    costs: { type: 'string' },
    built: { type: 'boolean' },
    markdown: { type: 'boolean' },
    picture: { type: 'boolean' },
  },
});

const cells = cellsOf();
const [seconds, rounds, hold] = [values.seconds, values.rounds, values.hold].map(Number);
const sizes = numbers('simulated', values.simulated, [100, 1_000, 3_000]);
if (!(seconds > 0 && hold > 0) || !Number.isInteger(rounds) || rounds < 1)
  throw new Error('--seconds and --hold are numbers above 0, --rounds is a whole number above 0');

const ofServices = [
  values.services,
  values.bodies,
  values.kinds,
  values.idle,
  values.busy,
  values.contestants,
  values.base,
];
const ofModel = [values.simulated, values.calibrate, values.costs];
const [real, model] = [ofServices, ofModel].map((options) => options.some((option) => option !== undefined));
const everything = real === model;

// The handles of the servers do not keep this process alive.
const alive = setInterval(() => {}, 1_000);
const figures = everything || real ? await playServices() : [];
const fleet = everything || model ? await playModel() : undefined;
if (values.picture || (!real && !model)) writeFileSync(IMAGE, picture(USUAL_BODY, figures, fleet, OURS));
clearInterval(alive);

async function playServices(): Promise<readonly CellFigures[]> {
  const stolen = watchStolenTime();
  const [load] = loadavg();
  const server = await startRedis();
  const base = values.base === undefined ? undefined : buildBase(values.base);
  try {
    const redis = server.client();
    console.log(`${await machine(redis)}\n`);
    const entrants = entrantsOf(server.port, base?.folder);
    const measured = await measureServices(redis, { cells, entrants, rounds, time: seconds * 1e3, progress });
    show(servicesTables(measured, POLLERS[0].name));
    console.log(
      `CPU time that the machine's host gave to others meanwhile: ${percent(stolen())}. Load average at the start: ${figure(load)} on ${availableParallelism()} cores\n`,
    );
    return measured;
  } finally {
    await server.stop();
    base?.remove();
  }
}

async function playModel() {
  const calibration =
    values.costs === undefined
      ? await calibrate(hold, progress)
      : (JSON.parse(readFileSync(values.costs, 'utf8')) as Calibration);
  if (values.calibrate !== undefined) writeFileSync(values.calibrate, JSON.stringify(calibration, undefined, 2));
  show([await checkModel(calibration, hold)]);
  const simulated = await simulateFleet(sizes, calibration.costs, hold, progress);
  show([fleetTable(simulated, hold)]);
  return simulated;
}

/** Without options: these numbers of services with the usual body, and the usual number of services with each body. */
function cellsOf(): readonly Cell[] {
  const kinds = (values.kinds?.split(',') ?? KINDS) as readonly Kind[];
  if (kinds.some((kind) => !KINDS.includes(kind))) throw new Error(`--kinds are ${KINDS.join(', ')}`);
  const states = values.idle === values.busy ? [false, true] : [values.busy === true];
  const [given, bodies] = [values.services !== undefined, values.bodies !== undefined];
  const services = numbers('services', values.services, bodies ? [USUAL_SERVICES] : SERVICES);
  if (services.some((number) => number < 2 || (number > 4 && number % 4 > 0)))
    throw new Error('--services are 2, 3, 4, or multiples of 4, because they are in 4 processes');
  const times = numbers('bodies', values.bodies, given ? [USUAL_BODY] : BODIES);
  const wanted = (number: number, body: number) => given || bodies || number === USUAL_SERVICES || body === USUAL_BODY;
  return services.flatMap((number) =>
    states.flatMap((busy) =>
      kinds.flatMap((kind) =>
        times.filter((body) => wanted(number, body)).map((body) => ({ services: number, body, kind, busy })),
      ),
    ),
  );
}

function entrantsOf(port: number, base: string | undefined): readonly Entrant[] {
  const node = (name: string, contestant: Contestant): Entrant => ({
    name,
    warmUp: WARM_UP,
    start: (processes, services) => startNodeCrew(contestant, port, processes, services, WORKER),
  });
  const all: Entrant[] = [node(OURS, libraryAt(`${process.cwd()}/dist`))];
  if (base !== undefined) all.push(node(`base ${values.base}`, libraryAt(base)));
  all.push(...POLLERS.map((poller) => node(poller.name, poller)));
  all.push({
    name: 'redisson',
    warmUp: WARM_UP,
    start: (processes, services) => startRedissonServices(port, processes, services),
  });
  const names = values.contestants?.split(',') ?? all.map(({ name }) => name);
  all.push(node(leastLine.name, leastLine)); // only if it is named
  const unknown = names.filter((name) => !all.some((entrant) => entrant.name === name));
  if (unknown.length > 0)
    throw new Error(`There is no contestant ${unknown}; there are ${all.map(({ name }) => name).join(', ')}`);
  const why = names.includes('redisson') ? prepareRedisson() : undefined;
  if (why !== undefined) console.log(`${redisson.name} is not here, because ${why}`);
  return all.filter(
    ({ name }) => (names.includes(name) || name.startsWith('base ')) && (name !== 'redisson' || why === undefined),
  );
}

function numbers(name: string, given: string | undefined, otherwise: readonly number[]): readonly number[] {
  const all = given?.split(',').map(Number) ?? otherwise;
  if (all.some((number) => !Number.isInteger(number) || number < 0))
    throw new Error(`--${name} are whole numbers: 4,16`);
  return all;
}

function show(tables: readonly Table[]): void {
  for (const table of tables) console.log(`${values.markdown ? markdown(table) : printed(table)}\n`);
}

/** In a terminal, the next line overwrites it. */
function progress(text: string): void {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[2K${text}` : `${text}\n`);
}
