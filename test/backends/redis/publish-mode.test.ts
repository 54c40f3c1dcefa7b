import type { AcquireRequest } from '../../../lib/backends/lock-backend.js';
import type { Connection } from '../../../lib/backends/redis/links/connection.js';
import { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import { ScriptMonitor } from '../../support/servers/script-monitor.js';
import { until } from '../../support/until.js';
import { CLIENT, WakeRecorder } from './redis-world.js';

/**
 * Some managed clusters refuse scripts without a key, or the command that asks for the mode. A release must not depend
 * on its answer.
 */
describe('how a cluster is asked for sharded pub/sub', () => {
  const errors: unknown[] = [];
  const backends: RedisBackend[] = [];
  let cluster: RedisCluster;
  let count = 0;

  afterEach(async () => {
    await Promise.all(backends.splice(0).map((backend) => backend.close()));
    errors.length = 0;
  });

  function open(connection: Connection = { nodes: cluster.nodes }): RedisBackend {
    const backend = new RedisBackend({
      connection,
      runtime: nodeRuntime,
      commandTimeout: 20_000,
      shardedPubSub: 'auto',
      minReplicas: 0,
      onError: (error) => errors.push(error),
    });
    backends.push(backend);
    return backend;
  }

  const request = (type: AcquireRequest['type'] = 'reentrant'): AcquireRequest => ({
    key: `lock:${++count}`,
    owner: `${CLIENT}:${++count}`,
    type,
    leaseTime: 60_000,
    reserve: 0,
    waiterTimeout: 0,
  });

  describe('where it answers', () => {
    beforeAll(async () => {
      cluster = await startCluster();
    });
    afterAll(() => cluster.stop());

    it('is with the key of the lock, on the node that has it', async () => {
      const monitors = await Promise.all(cluster.servers.map((server) => ScriptMonitor.start(server)));
      const backend = open();
      const lock = request();
      await backend.acquire(lock);
      await backend.release(lock);
      const runs = () => monitors.flatMap((monitor) => monitor.runs);
      const asked = () => runs().filter(({ script, commands }) => script === 'knows-command-1' && commands.length > 0);
      await until(() => asked().length > 0);
      for (const monitor of monitors) monitor.stop();
      expect(asked()).toMatchObject([{ keys: [lock.key], args: ['spublish'] }]);
    });

    it('is before the first renewal, which wakes waiters if it makes the lease shorter', async () => {
      const [holding, waiting] = [open(), open()];
      const lock = request();
      await holding.acquire(lock);
      const wakes = new WakeRecorder();
      await waiting.subscribe(lock.key, 'reentrant', CLIENT, wakes.listen).ready;
      expect(await holding.renew({ ...lock, leaseTime: 30_000 })).toBe(true);
      await until(() => wakes.count('message') > 0);
    });
  });

  describe('where it refuses', () => {
    beforeAll(async () => {
      cluster = await startCluster(['--rename-command', 'COMMAND', '']);
    });
    afterAll(() => cluster.stop());

    it.each(['reentrant', 'fair', 'write'] as const)('releases a %s lock, and wakes its waiter', async (type) => {
      const [holding, waiting] = [open(), open()];
      const lock = request(type);
      const waiter = { ...lock, owner: `${CLIENT}:${++count}`, waiterTimeout: 60_000 };
      await holding.acquire(lock);
      const wakes = new WakeRecorder();
      await waiting.subscribe(lock.key, type, CLIENT, wakes.listen).ready;
      await waiting.acquire(waiter);
      expect(await holding.release(lock)).toMatchObject({ released: true });
      await until(() => wakes.count('message') > 0);
      expect(await waiting.acquire(waiter)).toMatchObject({ acquired: true });
      expect(await waiting.release(waiter)).toMatchObject({ released: true });
    });

    it('gives permits back, and wakes the callers that wait for them', async () => {
      const { synchronizers } = open();
      const wakes = new WakeRecorder();
      await synchronizers.subscribe('lock:mail', 'semaphore', wakes.listen).ready;
      await synchronizers.addPermits('lock:mail', 2, { session: 'ann:change', sequence: 1 });
      await until(() => wakes.count('message') > 0);
      expect(await synchronizers.availablePermits('lock:mail')).toBe(2);
    });

    it('reports the consequence once', async () => {
      const backend = open();
      for (const lock of [request(), request()]) {
        await backend.acquire(lock);
        await backend.release(lock);
      }
      expect(errors.map(String)).toEqual([
        expect.stringMatching(/published to the whole cluster: set shardedPubSub to 'on' if others use sharded/),
      ]);
    });
  });
});
