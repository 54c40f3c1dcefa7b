import { setTimeout as sleep } from 'node:timers/promises';
import type { LineBackend, Wake } from '../../../lib/backends/lock-backend.js';
import type { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import { startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { CLIENT, RedisWorld, WakeRecorder } from './redis-world.js';

describe('a grant to a place in line', () => {
  const world = new RedisWorld({ args: ['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0'] });
  const lineOf = ({ line }: RedisBackend) => line as LineBackend;

  /** One owner holds the lock, and another one has a place in its line. */
  const waiting = async (backend: RedisBackend) => {
    const holder = world.request();
    const place = world.request('reentrant', { key: holder.key, waiterTimeout: 30_000, nonce: 'n-1', pastLine: false });
    const listen = async (client: RedisBackend) => {
      const heard = new WakeRecorder();
      await lineOf(client).listen(holder.key, CLIENT, heard.listen).ready;
      return heard;
    };
    await backend.acquire(holder);
    const heard = await listen(backend);
    await backend.acquire(place);
    return { holder, place, heard, listen };
  };

  const granted = async ({ all }: WakeRecorder) => {
    await until(() => all.length > 0);
    return all[0] as Extract<Wake, { kind: 'message' }>;
  };

  it('says how much later than the request it began only if the same server has executed both', async () => {
    const backend = world.backend();
    const [stays, moves] = [await waiting(backend), await waiting(backend)];
    await sleep(20);
    await backend.release(stays.holder);
    const { grant } = await granted(stays.heard);
    expect(grant).toMatchObject({ nonce: 'n-1', reserved: 0, lease: stays.place.leaseTime });
    expect(grant?.after).toBeGreaterThanOrEqual(20);

    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(world.server.port)] });
    await until(async () => /state=online/.test(await world.redis.info('replication')));
    await until(async () => (await replica.client().exists(`nestjs_redis_lock_turns:{${moves.holder.key}}`)) === 1);
    await replica.client().replicaof('NO', 'ONE');
    const elsewhere = world.backend({ connection: replica.url });
    const heard = await moves.listen(elsewhere);
    await elsewhere.release(moves.holder);
    // Its clock may differ, so nothing is said of the time since the place was made.
    expect((await granted(heard)).grant).toMatchObject({ nonce: 'n-1', after: 0, lease: moves.place.leaseTime });
    await elsewhere.close();
    await replica.stop();
  });
});
