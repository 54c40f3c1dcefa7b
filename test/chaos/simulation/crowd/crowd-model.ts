import { loadServer } from '../../../../lib/backends/redis/in-process/memory-store.js';
import { createLockServiceWith } from '../../../../lib/service/create-lock-service.js';
import { SeededRandom } from '../../../support/seeded-random.js';
import { VirtualTime } from '../simulated/virtual-time.js';
import { ModelledBackend } from './modelled-backend.js';
import { EventLoop, ModelledProcess } from './modelled-process.js';
import { type Costs, ModelledServer } from './modelled-server.js';
import { type CrowdFigures, type CrowdPlan, WaitingCrowd, type World } from './waiting-crowd.js';

export interface CrowdModel extends CrowdPlan {
  readonly processes: number;
  readonly costs: Costs;
  /** All services are in one process, as in the run that calibrates the model. Default: each has an event loop. */
  readonly together?: boolean;
}

export interface ModelledFigures extends CrowdFigures {
  /**
   * The longest time for an answer, in milliseconds. If it exceeded the commandTimeout, the model would be too
   * optimistic.
   */
  readonly slowest: number;
}

/** The limit for a run that hangs, in milliseconds of virtual time. Each process adds the same time again. */
const LONGEST_RUN = 60_000;
const LONGEST_ROUND = 1_000;
const logger = { warn() {}, error() {} };

/** Runs the real engine, once for each process, against a modelled server in virtual time. */
export async function simulateCrowd({
  processes,
  costs,
  together = false,
  ...plan
}: CrowdModel): Promise<ModelledFigures> {
  await loadServer(); // real time passes meanwhile
  const time = new VirtualTime();
  const server = new ModelledServer(time, costs);
  const shared = new EventLoop(time);
  const chance = new SeededRandom(1);
  const backends: ModelledBackend[] = [];
  const loops = new Set<EventLoop>();
  const open = (name: number) => {
    const loop = together ? shared : new EventLoop(time);
    const process = new ModelledProcess(name, time, loop, chance);
    const backend = new ModelledBackend(time, process, server);
    loops.add(loop);
    backends.push(backend);
    return { process, locks: createLockServiceWith(process, { backend, logger }) };
  };
  const victim = open(0);
  const members = Array.from({ length: processes }, (_, index) => open(index + 1));

  const world: World = {
    now: () => time.now,
    sleep: (delay) => victim.process.sleep(delay),
    random: () => chance.next(),
    spent: async () => ({
      commands: server.countExcept('ping', 'subscribe'),
      pings: server.count('ping'),
      attempts: server.count('acquire'),
      messages: server.messages,
      server: server.worked,
      clients: [...loops].reduce((sum, { worked }) => sum + worked, 0),
    }),
  };
  const crowd = new WaitingCrowd(
    members.map(({ locks }) => locks),
    world,
    plan,
  );
  let figures: CrowdFigures | undefined;
  let failure: unknown;
  crowd.run(victim.locks).then(
    (found) => {
      figures = found;
    },
    (error) => {
      failure = error;
    },
  );
  await time.run(() => figures !== undefined || failure !== undefined, LONGEST_RUN + processes * LONGEST_ROUND);
  if (figures === undefined) throw failure ?? new Error(`${processes} processes did not all get the lock in time`);
  return { ...figures, slowest: Math.max(...backends.map(({ slowest }) => slowest)) };
}
