// A separate process that passes one signal, which never aborts, to thousands of acquisitions. It prints by how many
// bytes per call its heap has grown. This is the minimum of several rounds, because only a leak grows in each of them.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createLockService } from '../../../lib/service/create-lock-service.js';

const ROUNDS = 3;
const CALLS = 6_000;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const { signal } = new AbortController();
const services = [1, 2, 3].map(() => createLockService({ backend: 'memory' }));
const [locks] = services;
const members = services.map((service) => service.getLock('member'));
const handles = {
  'a lock': locks.getLock('order'),
  'a fair lock': locks.getFairLock('order:fair'),
  'a fenced lock': locks.getFencedLock('order:fenced'),
  'a multi-lock': locks.getMultiLock(...members.slice(0, 2)),
  'a red lock': locks.getRedLock(...members),
};

async function usedHeap(): Promise<number> {
  for (let n = 0; n < 3; n++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    collectGarbage();
  }
  return process.memoryUsage().heapUsed;
}

const growth: Record<string, number> = {};
for (const [kind, handle] of Object.entries(handles)) {
  let before = Number.POSITIVE_INFINITY; // the first round warms up
  growth[kind] = Number.POSITIVE_INFINITY;
  for (let round = 0; round <= ROUNDS; round++) {
    for (let n = 0; n < CALLS; n++) {
      const lease = await handle.tryLock(1_000, undefined, { signal });
      await lease?.release();
    }
    const after = await usedHeap();
    if (round > 0) growth[kind] = Math.min(growth[kind], (after - before) / CALLS);
    before = after;
  }
}
await Promise.all(services.map((service) => service.close()));
console.log(JSON.stringify(growth));
