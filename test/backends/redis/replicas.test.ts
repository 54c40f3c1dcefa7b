import { randomUUID } from 'node:crypto';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { CLIENT, failure, RedisWorld, WakeRecorder } from './redis-world.js';

describe('acquisitions that replicas must have', () => {
  const world = new RedisWorld({ args: ['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0'] });
  let replica: RedisServer;

  beforeAll(async () => {
    replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(world.server.port)] });
    await until(async () => /state=online/.test(await world.redis.info('replication')));
  });
  afterAll(() => replica?.stop());

  const replicated = (minReplicas = 1, commandTimeout = 2_000) => world.backend({ minReplicas, commandTimeout });

  it('count when the replica has them', async () => {
    const backend = replicated();
    const lock = world.request();
    expect(await backend.acquire(lock)).toMatchObject({ acquired: true });
    expect(await replica.client().hgetall(lock.key)).toEqual({ [lock.owner]: '1' });
    expect(await backend.renew(lock)).toBe(true);
    expect(await backend.release(lock)).toMatchObject({ released: true });
  });

  it('wait once for all of a batch', async () => {
    const backend = replicated();
    await backend.acquire(world.request());
    const locks = Array.from({ length: 30 }, () => world.request());
    const { wait } = await world.commands(() => Promise.all(locks.map((lock) => backend.acquire(lock))));
    expect(wait).toBe(1);
  });

  it('are released again when too few have them in time, and the error says how many', async () => {
    const backend = replicated(2, 1_000);
    const lock = world.request();
    const error = await failure(backend.acquire(lock));
    expect(error).toMatchObject({ kind: 'unavailable', outcome: 'refused', spent: true });
    expect(error.message).toMatch(/: gave up .+ because only 1 of 2 required replicas confirmed within 1000 ms$/);
    expect(await world.redis.exists(lock.key)).toBe(0);
  });

  it('include those of several locks, and transfers', async () => {
    const backend = replicated(2, 1_000);
    const locks = [world.request(), world.request('write')];
    expect(await failure(backend.acquireAll(locks))).toMatchObject({
      kind: 'unavailable',
      outcome: 'refused',
      spent: true,
    });
    for (const { key } of locks) expect(await world.redis.exists(key)).toBe(0);
    const [lock, plain] = [world.request(), world.backend()];
    await plain.acquire(lock);
    const transfer = {
      key: lock.key,
      type: lock.type,
      from: lock.owner,
      to: world.owner(),
      leaseTime: 5_000,
      reserve: 0,
    };
    expect(await failure(backend.transfer(transfer))).toMatchObject({ kind: 'unavailable' });
    expect(await world.redis.exists(lock.key)).toBe(0);
  });

  const granted = ({ all }: WakeRecorder) => all.find((wake) => wake.kind === 'message' && wake.lock === 'granted');

  it.each(['entered', 'refreshed'])(
    'are not in a message, which therefore says too little to begin: %s',
    async (last) => {
      const [backend, plain] = [replicated(), world.backend()];
      const holder = world.request();
      const place = {
        ...world.request(),
        key: holder.key,
        waiterTimeout: 30_000,
        nonce: randomUUID(),
        grantLease: 5_000,
      };
      await plain.acquire(holder);
      const heard = new WakeRecorder();
      await backend.line?.listen(holder.key, CLIENT, heard.listen).ready;
      await backend.acquire(place);
      if (last === 'refreshed') await backend.refreshWaiters([{ ...place, nonce: randomUUID() }], 30_000);
      await plain.release(holder);
      await until(() => granted(heard) !== undefined);
      expect(granted(heard)).toEqual({ kind: 'message', owner: place.owner, lock: 'granted' });
      expect(await backend.acquire(place)).toMatchObject({ acquired: true });
      expect(await backend.release(place)).toMatchObject({ released: true });
    },
  );

  it('do not wait when the lock is busy', async () => {
    const backend = replicated(2, 5_000);
    const lock = world.request();
    await world.backend().acquire(lock);
    expect(await backend.acquire({ ...lock, owner: world.owner() })).toMatchObject({ acquired: false });
  });

  it('delay no renewal and no release while they wait', async () => {
    const [backend, plain] = [replicated(2, 3_000), world.backend()];
    const held = world.request();
    await plain.acquire(held);
    let waiting = true;
    const slow = failure(backend.acquire(world.request())).finally(() => {
      waiting = false;
    });
    await until(async () => /cmd=wait/.test((await world.redis.client('LIST')) as string));
    expect(await backend.renew(held)).toBe(true);
    expect(await backend.release(held)).toMatchObject({ released: true });
    expect(waiting).toBe(true);
    for (const id of await world.connections('normal')) await world.redis.client('KILL', 'ID', id);
    expect(await slow).toMatchObject({ kind: 'unavailable' });
  });

  it('are released again when the connection broke before replicas were asked', async () => {
    const backend = replicated(1, 3_000);
    await backend.acquire(world.request());
    replica.pause();
    const lock = world.request();
    const error = failure(backend.acquire(lock));
    await until(async () => /cmd=wait/.test((await world.redis.client('LIST')) as string));
    for (const id of await world.connections('normal')) await world.redis.client('KILL', 'ID', id);
    expect((await error).message).toMatch(/: gave up .+ because the replicas could not be asked/);
    replica.resume();
    expect(await world.redis.exists(lock.key)).toBe(0);
  });
});
