import { fuzzMemory } from '../../support/deadlocks/fuzz-memory.js';

/**
 * Random nested acquisitions, checked against a wait-for graph that the test keeps itself. test/chaos/deadlocks.test.ts
 * has many more of them, also among processes on Redis.
 */
describe('random flows of nested acquisitions', () => {
  it('end, and none is refused that is in no deadlock: three services in memory', async () => {
    let refused = 0;
    for (let seed = 1; seed <= 5; seed++) {
      const verdict = await fuzzMemory(seed, 3, 3);
      expect({ seed, problems: verdict.problems }).toEqual({ seed, problems: [] });
      refused += verdict.refused;
    }
    expect(refused).toBeGreaterThan(5);
  });
});
