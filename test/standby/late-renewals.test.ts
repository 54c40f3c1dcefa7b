import { setImmediate } from 'node:timers/promises';
import { TopologyFactory } from '../../lib/backends/redis/links/topology.js';
import { RedisBackend } from '../../lib/backends/redis/redis-backend.js';
import { Cable } from '../chaos/simulation/simulated/cable.js';
import { Network } from '../chaos/simulation/simulated/network-conditions.js';
import { SimulatedProcess } from '../chaos/simulation/simulated/simulated-process.js';
import { SimulatedServer } from '../chaos/simulation/simulated/simulated-server.js';
import { SimulatedTopology } from '../chaos/simulation/simulated/simulated-topology.js';
import { VirtualTime } from '../chaos/simulation/simulated/virtual-time.js';
import { SeededRandom } from '../support/seeded-random.js';

const COMMAND_TIMEOUT = 200;
const LATENCY = 20;

/** The loop may make a lease shorter as soon as the thread waits for no answer. */
describe('a renewal of the thread', () => {
  it('is not executed after the thread has stopped waiting for it', async () => {
    const time = new VirtualTime();
    const conditions = { latency: [LATENCY, LATENCY], slow: 0, fates: {}, unheard: 0 } as const;
    const network = new Network(conditions, new SeededRandom(1));
    const server = new SimulatedServer(time, 1);
    const process = new SimulatedProcess('p1', time, new SeededRandom(2), 1, 0);
    const cable = new Cable(time, network, process, COMMAND_TIMEOUT);
    const backend = new RedisBackend({
      connection: new TopologyFactory(() => new SimulatedTopology(cable, [server], 'ioredis')),
      runtime: process.unobserved,
      commandTimeout: COMMAND_TIMEOUT,
      shardedPubSub: 'off',
      minReplicas: 0,
      onError: () => {},
      standby: true,
    });
    server.redis.execute('HSET', ['a', 'c:1', '1']);
    server.redis.execute('PEXPIRE', ['a', '60000']);
    const request = { key: 'a', owner: 'c:1', type: 'reentrant', leaseTime: 100_000 } as const;
    const left = () => Number(server.redis.execute('PTTL', ['a']));
    /** Lets time pass until the promise is settled. */
    const settled = async <T>(promise: Promise<T>): Promise<T> => {
      let isOver = false;
      promise
        .catch(() => {})
        .then(() => {
          isOver = true;
        });
      while (!isOver) {
        await setImmediate();
        await time.run(() => isOver, time.now + 1_000);
      }
      return promise;
    };
    await settled(backend.renew(request));
    expect(left()).toBeGreaterThan(60_000);
    server.redis.execute('PEXPIRE', ['a', '60000']);

    // It arrives in time, and is executed after the wait, but before the latest time at which that may end.
    server.freeze(COMMAND_TIMEOUT + LATENCY / 2);
    await expect(settled(backend.renew(request))).rejects.toThrow('no answer');
    await settled(process.sleep(5 * LATENCY));
    expect(left()).toBeLessThan(60_000);
    await settled(backend.close());
  });
});
