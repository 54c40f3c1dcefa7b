/**
 * Random nested acquisitions, judged by a separate wait-for graph. There are many more of them than in
 * test/engine/deadlock/random-flows.test.ts.
 */
import { fuzzMemory } from '../support/deadlocks/fuzz-memory.js';
import { fuzzProcesses } from '../support/deadlocks/fuzz-processes.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';

const LONG = Number(process.env.CHAOS_LONG ?? 1);
const SEED = Number(process.env.DEADLOCK_SEED ?? 1_000);

describe('deadlocks in random flows of nested acquisitions', () => {
  it('are found, without false alarms: three services in memory', async () => {
    for (let seed = SEED; seed < SEED + 200 * LONG; seed++) {
      const { problems } = await fuzzMemory(seed, 3, 3);
      expect({ seed, problems }).toEqual({ seed, problems: [] });
    }
  }, 600_000);

  describe('on Redis', () => {
    let redis: RedisServer;
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(() => redis.stop());

    it('are found, and none that there is not: three processes', async () => {
      for (let seed = SEED; seed < SEED + LONG; seed++) {
        const { problems, refused } = await fuzzProcesses(redis.url, seed, 4, 3);
        expect({ seed, problems }).toEqual({ seed, problems: [] });
        expect(refused).toBeGreaterThan(0);
      }
    }, 600_000);

    it('are found, without false alarms: three processes that are suspended at times', async () => {
      for (let seed = SEED; seed < SEED + LONG; seed++) {
        const { problems } = await fuzzProcesses(redis.url, -seed, 4, 2, true);
        expect({ seed, problems }).toEqual({ seed, problems: [] });
      }
    }, 600_000);
  });
});
