import { connect as connectTo, createServer, type Socket } from 'node:net';
import type { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import { freePort } from '../../support/servers/free-port.js';
import { until } from '../../support/until.js';
import { failure, RedisWorld, succeeds } from './redis-world.js';

const TIMEOUT = 300;

describe('a request that reaches Redis after its caller has left', () => {
  const world = new RedisWorld();

  afterEach(() => world.redis.flushall());

  /** For what must succeed even if this machine is busy. */
  const patient = () => world.backend();

  /** Sends a request while the server is paused, and resumes the server when the request has timed out. */
  const late = async (backend: RedisBackend, send: () => Promise<unknown>) => {
    await until(() => succeeds(backend.inspect('lock:warm-up')));
    world.server.pause();
    const error = await failure(send());
    await new Promise((resolve) => setTimeout(resolve, 100));
    world.server.resume();
    await world.redis.ping();
    // The server then executes what it has received from all connections, in the order of arrival.
    await new Promise((resolve) => setTimeout(resolve, 100));
    await world.redis.ping();
    return error;
  };

  it.each(['reentrant', 'fair', 'fenced', 'read', 'write'] as const)('acquires no %s lock', async (type) => {
    const backend = world.backend({ commandTimeout: TIMEOUT });
    await until(() => succeeds(backend.release(world.request(type))));
    const lock = world.request(type);
    expect(await late(backend, () => backend.acquire(lock))).toMatchObject({
      kind: 'unavailable',
      outcome: 'unknown',
      validUntil: expect.any(Number),
    });
    expect(await world.redis.exists(lock.key)).toBe(0);
  });

  it('acquires nothing on a borrowed client, and leaves its connection open', async () => {
    const client = world.server.client();
    const backend = world.backend({ connection: client, commandTimeout: TIMEOUT });
    const lock = world.request();
    await late(backend, () => backend.acquire(lock));
    expect(await world.redis.exists(lock.key)).toBe(0);
  });

  it('acquires none of several locks', async () => {
    const backend = world.backend({ commandTimeout: TIMEOUT });
    const locks = [world.request(), world.request()];
    await late(backend, () => backend.acquireAll(locks));
    expect(await world.redis.exists(...locks.map(({ key }) => key))).toBe(0);
  });

  it.each(['reentrant', 'fenced', 'write'] as const)('does not transfer a %s lock', async (type) => {
    const backend = world.backend({ commandTimeout: TIMEOUT });
    const lock = world.request(type);
    await patient().acquire(lock);
    const { key, owner: from, leaseTime } = lock;
    const to = world.owner();
    await late(backend, () => backend.transfer({ key, type, from, to, leaseTime, reserve: 0 }));
    expect((await patient().inspect(key)).owners).toMatchObject([{ owner: from }]);
  });

  it('takes no place in the queue of a fair lock', async () => {
    const backend = world.backend({ commandTimeout: TIMEOUT });
    const holder = world.request('fair');
    await patient().acquire(holder);
    const waiter = { ...holder, owner: world.owner(), waiterTimeout: 60_000 };
    await late(backend, () => backend.acquire(waiter));
    expect((await patient().inspect(holder.key)).queue).toEqual([]);
  });

  it('takes no place in line', async () => {
    const backend = world.backend({ commandTimeout: TIMEOUT });
    const reader = world.request('read');
    await patient().acquire(reader);
    await late(backend, () =>
      backend.acquire({ ...reader, type: 'write', owner: world.owner(), waiterTimeout: 60_000 }),
    );
    expect((await world.keys()).filter((key) => key.includes('turns'))).toEqual([]);
  });

  it('takes no permits, which nobody would ever release', async () => {
    const { synchronizers } = patient();
    const backend = world.backend({ commandTimeout: TIMEOUT });
    const key = world.key('semaphore');
    let sequence = 0;
    const request = () => ({ session: 'client:permits', sequence: ++sequence });
    await synchronizers.trySetPermits(key, 3, request());
    await late(backend, () => backend.synchronizers.takePermits(key, [1], request()));
    await late(backend, () => backend.synchronizers.drainPermits(key, request()));
    await late(backend, () => backend.synchronizers.takeLeasedPermits(key, [['0'.repeat(32)]], 60_000, request()));
    expect(await synchronizers.availablePermits(key)).toBe(3);
  });

  it('is refused also when its script has to be sent again', async () => {
    const backend = world.backend({ commandTimeout: TIMEOUT });
    const lock = world.request();
    await world.redis.script('FLUSH');
    await late(backend, () => backend.acquire(lock));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await world.redis.exists(lock.key)).toBe(0);
  });

  it('reports until when it could have been executed, and a release reports when it found nothing', async () => {
    const backend = world.backend({ commandTimeout: TIMEOUT });
    const lock = world.request();
    const before = await serverTime(world);
    const { validUntil } = await late(backend, () => backend.acquire(lock));
    expect(validUntil).toBeGreaterThanOrEqual(before + TIMEOUT);
    const later = patient();
    await until(async () => ((await later.release(lock)).at ?? 0) > (validUntil as number));
  });

  it('is executed when it arrives in time, however long the server was busy before', async () => {
    const backend = world.backend({ commandTimeout: 20_000 });
    await backend.acquire(world.request());
    world.server.pause();
    const lock = world.request();
    const acquired = backend.acquire(lock);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    world.server.resume();
    expect(await acquired).toMatchObject({ acquired: true });
  });
});

describe('the estimate of the server’s clock', () => {
  const world = new RedisWorld();

  it('is corrected by the first reply after the clock was set', async () => {
    let refusals = 0;
    let liesAfterRefusal = 0;
    const liar = await startLiar(world.server.port, (text) => {
      refusals += text.match(EXPIRED)?.length ?? 0;
      const changed = shiftTime(text, -3_600);
      if (refusals > 0 && changed !== text) liesAfterRefusal++;
      return changed;
    });
    const backend = world.backend({ connection: `redis://127.0.0.1:${liar.port}` });
    expect(await backend.acquire(world.request())).toMatchObject({ acquired: true });
    // A server that answers slowly is asked for its time several times before.
    expect(liar.lies).toBeGreaterThan(0);
    expect({ refusals, liesAfterRefusal }).toEqual({ refusals: 1, liesAfterRefusal: 0 });
    await liar.stop();
  });

  it('fails the acquisition when it is wrong twice in a row', async () => {
    const liar = await startLiar(world.server.port, (text) => shiftExpired(shiftTime(text, -3_600)));
    const backend = world.backend({ connection: `redis://127.0.0.1:${liar.port}` });
    const lock = world.request();
    const error = await failure(backend.acquire(lock));
    expect(error).toMatchObject({ kind: 'unavailable', outcome: 'refused' });
    expect(error.message).toMatch(/after its deadline, twice in a row/);
    expect(await world.redis.exists(lock.key)).toBe(0);
    await liar.stop();
  });

  it('costs one TIME command for each connection', async () => {
    const backend = world.backend();
    await world.redis.config('RESETSTAT');
    for (let n = 0; n < 20; n++) await backend.acquire(world.request());
    // The TIME calls of scripts are counted, too: one for each acquisition.
    expect(await world.redis.info('commandstats')).toMatch(/cmdstat_time:calls=21,/);
  });
});

async function serverTime(world: RedisWorld): Promise<number> {
  const [seconds, micros] = (await world.redis.time()).map(Number);
  return seconds * 1_000 + Math.floor(micros / 1_000);
}

/** A reply to TIME that is wrong by some seconds. */
function shiftTime(text: string, seconds: number): string {
  return text.replace(/\*2\r\n\$10\r\n(\d{10})\r\n/, (_, time) => `*2\r\n$10\r\n${Number(time) + seconds}\r\n`);
}

const EXPIRED = /(\$7\r\nexpired\r\n:)(\d+)/g;

function shiftExpired(text: string): string {
  return text.replace(EXPIRED, (_, start, time) => `${start}${Number(time) - 3_600_000}`);
}

/** A proxy that changes what the server answers. */
async function startLiar(target: number, change: (text: string) => string) {
  const sockets = new Set<Socket>();
  const liar = { port: await freePort(), lies: 0, stop: async () => {} };
  const server = createServer((client) => {
    const upstream = connectTo(target, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
    }
    client.on('data', (data) => upstream.write(data));
    upstream.on('data', (data) => {
      const text = data.toString('latin1');
      const changed = change(text);
      if (changed !== text) liar.lies++;
      client.write(Buffer.from(changed, 'latin1'));
    });
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(liar.port, '127.0.0.1', resolve));
  liar.stop = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  return liar;
}
