// A separate process that holds locks, and is idle while the garbage is collected, in turns. V8 reports what optimized
// code it throws away: node --expose-gc --trace-deopt. With `signals`, its callers use signals instead, and it prints what
// of theirs is still in memory afterwards. Arguments: the URL of a redis-server, and `signals`.
import { createLockService } from '../../../lib/service/create-lock-service.js';

const TURNS = 3;
const CALLERS = 64;
const CALLS = 100;
/** V8 keeps the shape of a class for two collections after its last instance. */
const COLLECTIONS = 4;

const collectGarbage = (globalThis as unknown as { gc: () => void }).gc;
const locks = createLockService({ connection: process.argv[2] });

/** As short-lived as what an acquisition creates, and nobody keeps an example. */
class Forgotten {
  used = 0;

  useForgotten(): number {
    return ++this.used;
  }
}

function useManyForgotten(): number {
  let sum = 0;
  for (let n = 0; n < 2_000_000; n++) sum += new Forgotten().useForgotten();
  return sum;
}

async function call(caller: number): Promise<void> {
  for (let n = 0; n < CALLS; n++) {
    const lease = await locks.acquire(`order:${caller}:${n}`);
    await lease.release();
  }
}

/** Uses the locks as callers do whose signals refer to something of theirs. */
async function useWithSignals(): Promise<Record<string, WeakRef<object>>> {
  const [heard, given] = [{}, {}];
  await locks.withLock('order', ({ signal }) => signal.addEventListener('abort', () => console.log(heard)));
  const controller = new AbortController();
  controller.signal.addEventListener('abort', () => console.log(given));
  await locks.withLock('order', { signal: controller.signal, waitTime: 1_000 }, () => {});
  return { heard: new WeakRef(heard), given: new WeakRef(given) };
}

async function collectAll(): Promise<void> {
  for (let n = 0; n < COLLECTIONS; n++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    collectGarbage();
  }
}

async function holdInTurns(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) {
    useManyForgotten();
    await Promise.all(Array.from({ length: CALLERS }, (_, caller) => call(caller)));
    await collectAll();
  }
}

if (process.argv[3] === 'signals') {
  const ofCallers = await useWithSignals();
  await collectAll();
  console.log(`in memory: ${Object.keys(ofCallers).filter((name) => ofCallers[name].deref() !== undefined)}`);
} else await holdInTurns();
await locks.close();
