import type { ListedResult } from '../../../lib/service/lock-inspection.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openPlace, PLACES } from '../../support/places.js';
import { until } from '../../support/until.js';

/** All pages: on a busy machine, one may end before all masters were asked. */
async function kept(locks: LockService, match?: string): Promise<ListedResult[]> {
  const results: ListedResult[] = [];
  let cursor: string | undefined;
  do {
    const page = await locks.list({ count: 1_000, match, cursor });
    results.push(...page.results);
    ({ cursor } = page);
  } while (cursor !== undefined);
  return results.sort((one, other) => (one.name < other.name ? -1 : 1));
}

describe.each(PLACES)('results of single flights in %s', (name) => {
  const place = openPlace(name);

  it('are listed and inspected by their size and time, in other processes, too, and never by their value', async () => {
    const [{ locks }, { locks: other }] = [place.service(), place.service()];
    await locks.singleFlight('prices:eur', { keepFor: '5m' }, async () => 'secret');
    await locks.singleFlight('prices:usd', { keepFor: '1h' }, async () => ({ list: [1, 2, 3] }));
    await locks.singleFlight('nothing', { keepFor: 0 }, async () => 'not kept');
    const results = await kept(other);
    expect(results).toEqual([
      { name: 'prices:eur', size: 8, remainingTime: expect.any(Number) },
      { name: 'prices:usd', size: 16, remainingTime: expect.any(Number) },
    ]);
    const [eur, usd] = results.map(({ remainingTime }) => remainingTime);
    expect(eur).toBeGreaterThan(200_000);
    expect(eur).toBeLessThanOrEqual(301_000);
    expect(usd).toBeGreaterThan(3_400_000);
    expect((await kept(other, '*usd')).map((each) => each.name)).toEqual(['prices:usd']);
    expect((await other.list()).locks).toEqual([]);
    const inspection = await other.inspect('prices:eur');
    expect(inspection).toEqual({
      locked: false,
      type: 'free',
      owners: [],
      waiting: expect.any(Number), // records are up to ten seconds old
      line: expect.any(Array),
      result: { size: 8, remainingTime: expect.any(Number) },
    });
    expect(JSON.stringify([results, inspection])).not.toContain('secret');
    expect(await other.inspect('nothing')).not.toHaveProperty('result');
    await other.forgetResult('prices:eur');
    expect(await locks.inspect('prices:eur')).not.toHaveProperty('result');
    expect((await kept(locks)).map((each) => each.name)).toEqual(['prices:usd']);
  });

  it('are shown beside a lock that is held, and not after they have lapsed', async () => {
    const { locks } = place.service();
    await locks.singleFlight('prices:eur', { keepFor: '3s' }, async () => 7);
    const lease = await locks.acquire('prices:eur');
    expect(await locks.inspect('prices:eur')).toMatchObject({ locked: true, result: { size: 1 } });
    await until(async () => (await locks.inspect('prices:eur')).result === undefined, 10_000);
    expect(await kept(locks, 'prices:eur')).toEqual([]);
    await lease.release();
  });
});
