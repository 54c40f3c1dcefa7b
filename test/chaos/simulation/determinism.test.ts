import { KIND_NAMES } from './kinds.js';
import { simulate } from './run-schedules.js';

describe('a simulated schedule', () => {
  it.each(KIND_NAMES)('is the same whenever it runs: %s', async (kind) => {
    for (let seed = 1; seed <= 10; seed++) {
      const first = await simulate(seed, { kind });
      const again = await simulate(seed, { kind });
      expect(again.history.records).toEqual(first.history.records);
      expect(again.events).toBe(first.events);
    }
  });

  it('differs from seed to seed', async () => {
    const [one, other] = [await simulate(1, { kind: 'storm' }), await simulate(2, { kind: 'storm' })];
    expect(one.history.records).not.toEqual(other.history.records);
  });
});
