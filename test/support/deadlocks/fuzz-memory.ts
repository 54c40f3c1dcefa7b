import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import { LockEngine } from '../../../lib/engine/lock-engine.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { ENGINE_DEFAULTS } from '../engine-defaults.js';
import { ms } from '../lock-world.js';
import { VirtualRuntime } from '../runtime/virtual-runtime.js';
import { SeededRandom } from '../seeded-random.js';
import { randomPlan } from './plans.js';
import { type FlowEvent, runPlans } from './run-plans.js';
import { judge, type Verdict } from './wait-for-graph.js';

/**
 * A deadlock is found within two seconds, or a little later if one of its members waits for several names in turn.
 */
const ALLOWED = { afterwards: 800, apart: 0, longest: 2_500 };

/** Runs random flows of three services on one store in virtual time, and judges them by a separate wait-for graph. */
export async function fuzzMemory(seed: number, flows: number, plans: number): Promise<Verdict> {
  const runtime = new VirtualRuntime(seed);
  const store = new MemoryStore();
  const chance = new SeededRandom(seed);
  const events: FlowEvent[] = [];
  const services = ['P', 'Q', 'R'].map((name) => ({ name, locks: serviceOn(store, runtime) }));
  const runs = services.flatMap(({ name, locks }) =>
    Array.from({ length: flows }, () => {
      const now = () => runtime.monotonic();
      const sleep = (time: number) => new Promise<void>((resolve) => void runtime.timer(time, resolve));
      const report = (event: FlowEvent) => void events.push(event);
      const world = { locks, name, now, sleep, report };
      return runPlans(
        world,
        Array.from({ length: plans }, () => randomPlan(chance)),
      );
    }),
  );
  const closed = Promise.all(runs).then(() => Promise.all(services.map(({ locks }) => locks.close())));
  await runtime.until(closed, 600_000).catch((error) => {
    if (!String(error).includes('not settled')) throw error;
  });
  return judge(events, ALLOWED);
}

function serviceOn(store: MemoryStore, runtime: VirtualRuntime): LockService {
  return new LockService(
    new LockEngine({
      ...ENGINE_DEFAULTS,
      backend: new MemoryBackend({ runtime, store }),
      runtime,
      logger: { warn: () => {}, error: () => {} },
      clientId: runtime.uuid(),
      watchdogTimeout: ms(30_000),
      waiterTimeout: ms(5_000),
      shutdownTimeout: ms(100),
      onLost: 'throw',
    }),
  );
}
