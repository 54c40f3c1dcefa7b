/**
 * Random nested acquisitions, checked against a wait-for graph that the test keeps itself. test/chaos/deadlocks.test.ts
 * has more of them.
 */
import { fuzzMemory } from '../../support/deadlocks/fuzz-memory.js';
import { fuzzProcesses } from '../../support/deadlocks/fuzz-processes.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

describe('random flows of nested acquisitions', () => {
  it('end, and none is refused that is in no deadlock: three services in memory', async () => {
    let refused = 0;
    for (let seed = 1; seed <= 12; seed++) {
      const verdict = await fuzzMemory(seed, 3, 3);
      expect({ seed, problems: verdict.problems }).toEqual({ seed, problems: [] });
      refused += verdict.refused;
    }
    expect(refused).toBeGreaterThan(12);
  });

  describe('on Redis', () => {
    let redis: RedisServer;
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(() => redis.stop());

    it('end, and none is refused that is in no deadlock: three processes', async () => {
      const { problems, refused } = await fuzzProcesses(redis.url, 1, 4, 1);
      expect(problems).toEqual([]);
      expect(refused).toBeGreaterThan(0);
    });
  });
});
