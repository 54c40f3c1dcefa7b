import type { Caller } from './caller.js';
import type { Errand } from './errands.js';
import type { Gate } from './shared-objects.js';

/** Sets up a latch that others wait for. */
const gateMake: Errand = async (caller) => {
  const { shared, permits, recorder, chance } = caller;
  const gate = shared.add(chance.whole(1, 3), recorder.now());
  const { name, count } = gate;
  const latch = recorder.locks.getCountDownLatch(name);
  gate.set = await permits.step(name, 'set', count, () => latch.trySetCount(count));
};

/** Takes over one of the steps that a latch waits for. */
const gateCount: Errand = async (caller) => {
  const gate = caller.shared.unfinished;
  if (gate === undefined) return gateMake(caller);
  await caller.stay();
  if (gate.claimed < gate.count) await countDown(caller, gate);
};

/** Waits for a latch without a limit, for a while, or not at all. */
const gatePass: Errand = async (caller) => {
  const { shared, chance, permits } = caller;
  const gate = shared.anyGate(chance);
  if (gate === undefined) return gateMake(caller);
  const kind = chance.next();
  if (kind < 0.6) return permits.pass(gate.name);
  await permits.pass(gate.name, { waitTime: kind < 0.7 ? 0 : chance.whole(1, 300) });
};

/** Makes one step, and records it. */
export async function countDown(
  { permits, recorder }: Pick<Caller, 'permits' | 'recorder'>,
  gate: Gate,
): Promise<void> {
  gate.claimed++;
  const latch = recorder.locks.getCountDownLatch(gate.name);
  if (await permits.step(gate.name, 'counting', 1, () => latch.countDown(), 'counted')) gate.counted++;
}

export const LATCH_ERRANDS = { gateMake, gateCount, gatePass };
