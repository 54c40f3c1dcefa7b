// @ts-expect-error: this module has no types.
import { SMALL_HEAP } from '../support/runtime/live-heap.mjs';
import { until } from '../support/until.js';
import { BlockedWorld, run } from './blocked-process.js';

const LEASE = 1_500;
/** To fill the heap and collect it, on a machine that has much else to do, in milliseconds. */
const SLOW = 300_000;

describe('a garbage collection that blocks the event loop for longer than a lease', () => {
  const world = new BlockedWorld();

  it(
    'takes a lock away, and not with keepWhileBlocked',
    async () => {
      const { child, said } = run(
        'long-collection.ts',
        [world.server.url, String(LEASE)],
        [`--max-old-space-size=${SMALL_HEAP}`],
      );
      const find = (kind: string, what: 'held' | 'result' | 'failed' | 'error') =>
        said.find((one) => one.kind === kind && one[what] !== undefined);
      await until(() => said.some(({ ready }) => ready), SLOW);
      const tokens: Record<string, number[]> = { kept: [], unkept: [] };
      await until(async () => {
        for (const name of ['kept', 'unkept']) {
          const lease = await world.others.tryAcquire(name);
          if (lease !== null) tokens[name].push(lease.fencingToken);
          await lease?.release();
        }
        return said.some(({ longest }) => longest !== undefined);
      }, SLOW);
      // It may have been lost only a moment ago.
      const last = await world.others.acquire('unkept');
      await last.release();
      child.kill('SIGTERM');
      await until(() => said.some(({ done }) => done));

      const longest = said.find((one) => one.longest !== undefined)?.longest;
      console.log(`a collection of ${Math.round(longest ?? 0)} ms, ${tokens.unkept.length} others in the unkept lock`);
      expect(longest).toBeGreaterThan(LEASE);
      const [kept, unkept] = ['kept', 'unkept'].map((name) => said.find(({ kind }) => kind === name)?.fencingToken);
      expect(find('kept', 'held')).toMatchObject({ held: true, aborted: false, fencingToken: kept });
      expect(tokens.kept).toEqual([]);
      expect(find('kept', 'result')).toMatchObject({ result: 'result' });

      expect(find('unkept', 'held')).toMatchObject({ held: false, aborted: true });
      expect(last.fencingToken).toBeGreaterThan(unkept as number);
      const reason = expect.stringContaining('because the event loop of this process was blocked for');
      expect(find('unkept', 'failed')).toMatchObject({ failed: reason });
    },
    2 * SLOW,
  );
});
