import { CLAIM, type Grant, type LineBackend, type Wake } from '../../../lib/backends/lock-backend.js';
import type { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import { blockEventLoop } from '../../support/runtime/block-event-loop.js';
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

  it('is certain if the server that grants it is the one that the place was made on, and no other', async () => {
    const backend = world.backend();
    const [stays, moves] = [await waiting(backend), await waiting(backend)];
    await backend.release(stays.holder);
    expect((await granted(stays.heard)).grant).toMatchObject({ nonce: 'n-1', reserved: 0 });

    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(world.server.port)] });
    await until(async () => /state=online/.test(await world.redis.info('replication')));
    await until(async () => (await replica.client().exists(`nestjs_redis_lock_turns:{${moves.holder.key}}`)) === 1);
    await replica.client().replicaof('NO', 'ONE');
    const elsewhere = world.backend({ connection: replica.url });
    const heard = await moves.listen(elsewhere);
    await elsewhere.release(moves.holder);
    // Its clock may differ, so the time since the place was made is not known.
    expect(await granted(heard)).toEqual({ kind: 'message', owner: moves.place.owner, lock: 'granted' });
    await elsewhere.close();
    await replica.stop();
  });

  it('is accepted before its claim ends, although the scripts were flushed and the body blocks', async () => {
    const backend = world.backend();
    for (let round = 0; round < 2; round++) {
      const { holder, place, heard } = await waiting(backend);
      await backend.release(holder);
      const grant = (await granted(heard)).grant as Grant;
      await world.redis.script('FLUSH');
      let isRunning = false;
      const accepted = lineOf(backend).accept({ ...place, leaseTime: 60_000 }, grant, () => {
        if (!isRunning) blockEventLoop(CLAIM + 200);
        isRunning = true;
      });
      expect(await accepted).toBe(true);
      expect(isRunning).toBe(true);
      expect(await world.redis.pttl(place.key)).toBeGreaterThan(CLAIM);
    }
  });

  it('lets the body begin without a round trip', async () => {
    const backend = world.backend();
    const { holder, place, heard } = await waiting(backend);
    await backend.release(holder);
    const grant = (await granted(heard)).grant as Grant;
    world.server.pause();
    let isRunning = false;
    const accepted = lineOf(backend).accept({ ...place, leaseTime: 60_000 }, grant, () => {
      isRunning = true;
    });
    await until(() => isRunning);
    world.server.resume();
    expect(await accepted).toBe(true);
  });
});
