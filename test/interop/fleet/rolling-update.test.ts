import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/until.js';
import { Fleet } from './fleet.js';
import { FleetReport } from './fleet-report.js';
import { takeOverlaps } from './guard.js';
import { CLAIMING, hasOlder, OLDER, olderLibrary } from './older-library.js';

/** In ms. For figures: UPDATE_FOR=20000 npm run suite -- interop -t 'a rolling update' */
const DURATION = Number(process.env.UPDATE_FOR ?? 4_000);

describe('a rolling update with one process of this version and three of an earlier one', () => {
  const report = new FleetReport({
    title: `Bodies in ${DURATION} ms`,
    columns: ['earlier', 'body', 'the new one', 'each earlier one'],
    notes: [],
  });

  const cases = [OLDER, CLAIMING].flatMap((commit) => [1, 5].map((hold) => [commit, hold] as const));
  it.each(cases.filter(([commit]) => hasOlder(commit)))(
    'gives all of them turns: %s, bodies of %i ms',
    async (commit, hold) => {
      const { server, redis } = report;
      const older = olderLibrary(commit);
      const name = `update:${commit}:${hold}`;
      const callers = [{ name, type: 'reentrant' as const, hold, counter: `visits:${name}` }];
      const fleet = new Fleet(server.port, 30_000);
      fleet.add('new', callers);
      for (const process of ['old1', 'old2', 'old3']) fleet.add(process, callers, older);
      await until(() => fleet.grants().size === 4, 60_000);
      const before = fleet.grants();
      await sleep(DURATION);
      const after = fleet.grants();
      await fleet.stop();
      expect(await takeOverlaps(redis, callers[0].counter, [])).toEqual([]);
      const [bodies, ...others] = ['new', 'old1', 'old2', 'old3'].map((one) => after.get(one)! - before.get(one)!);
      report.rows.push([commit, `${hold} ms`, String(bodies), others.join(', ')]);
      // Nobody waits longer than two hand-overs for a release that all hear of. They share these.
      for (const other of others) expect(other).toBeGreaterThan(bodies / 10);
    },
    300_000,
  );
});
