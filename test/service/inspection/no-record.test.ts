import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { toClientId } from '../../../lib/backends/owner-ids.js';
import type { Runtime } from '../../../lib/backends/runtime.js';
import { takeSnapshot } from '../../../lib/dashboard/take-snapshot.js';
import { runCli } from '../../cli/run-cli.js';
import { ms } from '../../support/lock-world.js';
import { Place } from '../../support/places.js';
import { impatientRuntime } from '../../support/runtime/impatient-runtime.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

const ENDED =
  'its process has ended, keeps the lock by holdAtLeast, has not held anything for a second yet, or uses a quorum';

describe('a holder without a record', () => {
  let redis: RedisServer;
  let client: Redis;
  let place: Place;
  beforeAll(async () => {
    redis = await startRedis();
    client = redis.client();
    place = await Place.open('memory');
  });
  afterAll(async () => {
    await place.close();
    await redis.stop();
  });

  const service = (runtime?: Runtime) =>
    place.service({ backend: undefined, connection: redis.url, keyPrefix: 'lock:' }, runtime);

  /** A lock as Redisson writes it, and one as this library does. */
  async function hold(name: string, clientId: string, lease: number): Promise<string> {
    const owner = `${clientId}:41`;
    await client.hset(`lock:${name}`, owner, 1);
    await client.pexpire(`lock:${name}`, lease);
    return owner;
  }

  it.each([
    { kind: 'of Redisson', clientId: randomUUID(), redisson: true, who: 'a Redisson client' },
    {
      kind: 'that is gone',
      clientId: toClientId(randomUUID()),
      redisson: undefined,
      who: 'a client without a record',
    },
  ])(
    '$kind is described as such by errors, inspect(), list(), the command line and the dashboard',
    async (holder) => {
      const { kind, clientId, redisson, who } = holder;
      const name = `order ${kind}`;
      const owner = await hold(name, clientId, 120_000);
      const { locks } = service();
      const busy = await locks.acquire(name, { waitTime: '5s' }).catch((reason) => reason);
      expect(busy).toMatchObject({ name: 'LockBusyError', holder: owner, holderClient: undefined });
      expect(busy.message).toContain(`held by ${owner} of ${who}, its lease ends in`);
      const several = await locks.acquire([name, 'free'], { waitTime: '5s' }).catch((reason) => reason);
      expect(several.message).toContain(`'${name}' is held by ${owner} of ${who}; none was taken`);

      const seen = { owner, mine: false, redisson, remainingTime: expect.any(Number) };
      expect((await locks.inspect(name)).owners).toEqual([seen]);
      const listed = (await locks.list()).locks.find((lock) => lock.name === name);
      expect(listed?.owners).toEqual([seen]);
      const shown = (await takeSnapshot(locks, undefined)).locks.find((lock) => lock.name === name);
      expect(shown?.owners).toMatchObject([{ owner, redisson: redisson === true, application: '' }]);

      const inspected = await runCli(['inspect', name], redis.url);
      expect(inspected.stdout).toContain(
        redisson ? `a Redisson client (${owner})` : `a client without a record: ${ENDED} (${owner})`,
      );
      expect((await runCli(['ls'], redis.url)).stdout).toContain(redisson ? `a Redisson client (${owner})` : owner);
    },
    60_000,
  );

  it('may be one that keeps a lock by holdAtLeast, and its description says so', async () => {
    const { locks } = service();
    await locks.holdWhile(await locks.acquire('kept'), () => {}, { holdAtLeast: ms(60_000) });
    const { stdout } = await runCli(['inspect', 'kept'], redis.url);
    expect(stdout).toMatch(/a client without a record: .*keeps the lock by holdAtLeast/);
  });

  it('is described as such by the warning about a long wait', async () => {
    const redisson = await hold('java', randomUUID(), 120_000);
    const gone = await hold('gone', toClientId(randomUUID()), 120_000);
    const { locks, log } = service(impatientRuntime);
    const stop = new AbortController();
    const waits = ['java', 'gone'].map((name) => locks.acquire(name, { signal: stop.signal }).catch(() => {}));
    await until(() => log.warnings.length >= 2, 90_000);
    stop.abort();
    await Promise.all(waits);
    expect([...log.warnings].sort()).toEqual([
      `A caller has waited for the lock 'gone' for over 30 s; held by a client without a record: ${ENDED} (${gone})`,
      `A caller has waited for the lock 'java' for over 30 s; held by a Redisson client (${redisson})`,
    ]);
  }, 120_000);
});
