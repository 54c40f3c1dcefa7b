// A separate process with a large live heap, which holds a lock with `keepWhileBlocked`, and another one without, until its event
// loop was blocked by a garbage collection that was longer than their lease. It prints a line of JSON for each thing that happens,
// and ends by SIGTERM. Its arguments are <url> <lease in ms>.
import { once } from 'node:events';
import { createLockService } from '../../../lib/service/create-lock-service.js';
// @ts-expect-error: this module has no types.
import { LiveHeap } from '../runtime/live-heap.mjs';

const [url, lease] = process.argv.slice(2);
const watchdogTimeout = Number(lease);
const say = (what: object) => process.stdout.write(`${JSON.stringify(what)}\n`);
const ended = once(process, 'SIGTERM');
const heap = await LiveHeap.fill();

/** @returns what says whether the lock is still held, and then gives it back */
async function hold(kind: string, keepWhileBlocked: number): Promise<() => Promise<void>> {
  const logger = { warn: () => {}, error: (error: string) => say({ kind, error }) };
  const locks = createLockService({ connection: url, watchdogTimeout, keepWhileBlocked, logger });
  return new Promise((resolve) => {
    const done = locks.withLock(kind, async (lease) => {
      const { fencingToken } = lease;
      say({ kind, fencingToken });
      resolve(async () => {
        say({ kind, held: lease.held, aborted: lease.signal.aborted, fencingToken });
        await done.then(
          () => say({ kind, result: 'result' }),
          (error: Error) => say({ kind, failed: error.message }),
        );
        await locks.close();
      });
      await ended;
    });
  });
}

const ends = [await hold('kept', 120_000), await hold('unkept', 0)];
say({ ready: true });
const longest = await heap.churn(watchdogTimeout);
const done = ends.map((end) => end());
say({ longest });
await Promise.all(done);
say({ done: true });
