/**
 * Sends commands in random order to a backend and to a small model. A failure prints the shortest list of commands that
 * was found, and the seed. To run it again: PROPERTY_SEED=<seed> npm run suite -- chaos -t 'any order'.
 */
import fc from 'fast-check';
import { toClientId } from '../../../lib/backends/owner-ids.js';
import { MemoryBackend } from '../../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../../lib/backends/redis/in-process/memory-store.js';
import type { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import { redisFixture } from '../../contract/support/redis-fixture.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { listenings, lockCommands } from './lock-commands.js';
import { LockModel } from './lock-model.js';
import { type Client, ModelWorld } from './model-world.js';

const SEED = Number(process.env.PROPERTY_SEED ?? 20_250_101);
const LONG = Number(process.env.CHAOS_LONG ?? 1);

/** Runs random commands on new locks of these clients. */
async function agree(
  runs: number,
  length: number,
  open: () => { clients: readonly Client[]; elapse: (time: number) => Promise<void> },
): Promise<void> {
  let run = 0;
  const property = fc.asyncProperty(
    listenings,
    fc.commands(lockCommands, { maxCommands: length, size: 'max' }),
    async (listening, commands) => {
      const model: LockModel = new LockModel(
        (key) => world.listens(key),
        (key, owner) => world.isHeard(key, owner),
      );
      const { clients, elapse } = open();
      const world: ModelWorld = new ModelWorld(model, clients, elapse, `lock:${++run}:`);
      try {
        await Promise.all(listening.map(({ client, name, channel }) => world.listen(client, name, channel)));
        await fc.asyncModelRun(() => ({ model, real: world }), commands);
      } finally {
        world.close();
      }
    },
  );
  await fc.assert(property, { seed: SEED, numRuns: runs * LONG, endOnFailure: false });
}

describe('a backend that is asked any commands in any order', () => {
  it('behaves like the model: memory', async () => {
    await agree(600, 60, () => {
      let now = 1_000;
      const clock = { monotonic: () => now, wall: () => 1_735_689_600_000 + now };
      const store = new MemoryStore(clock);
      const clients = Array.from({ length: 3 }, () => ({
        id: toClientId(nodeRuntime.uuid()),
        backend: new MemoryBackend({ runtime: nodeRuntime, store }),
      }));
      const elapse = async (time: number) => {
        now += time;
      };
      return { clients, elapse };
    });
  }, 600_000);

  describe('Redis', () => {
    let redis: RedisServer;
    let clients: Client[];

    beforeAll(async () => {
      redis = await startRedis();
      const fixture = redisFixture(redis.url, () => redis.stop());
      const connected = await Promise.all([fixture.connect(), fixture.connect(), fixture.connect()]);
      clients = connected.map(({ id, backend }) => ({ id, backend: backend as RedisBackend }));
    }, 60_000);

    afterAll(async () => {
      await Promise.all(clients.map(({ backend }) => backend.close()));
      await redis.stop();
    });

    it('behaves like the model: Redis', async () => {
      await agree(200, 40, () => ({ clients, elapse: (time) => new Promise((done) => setTimeout(done, time + 1)) }));
    }, 600_000);
  });
});
