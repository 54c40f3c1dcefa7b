import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { toClientId } from '../../../lib/backends/owner-ids.js';
import type { Runtime } from '../../../lib/backends/runtime.js';
import { takeSnapshot } from '../../../lib/dashboard/take-snapshot.js';
import type { Connection } from '../../../lib/service/redis-lock-options.js';
import { runCli } from '../../cli/run-cli.js';
import { Place } from '../../support/places.js';
import { impatientRuntime } from '../../support/runtime/impatient-runtime.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

/** Writes the forged data at the key of a record. */
type Forge = (key: string, client: Redis) => Promise<unknown>;

const LIST = 'nestjs_redis_lock_clients';

/** A record as a client of this library writes it. */
const GOOD: Readonly<Record<string, string>> = {
  application: 'forger',
  host: 'web-1',
  pid: '7',
  version: '1.0.0',
  since: '1700000000000',
  held: '1',
  waiting: '1',
  longestWait: '5',
  holds: '[]',
  waits: '[]',
};
const HOLD = { key: 'lock:order', type: 'reentrant', owner: 'o:1', group: '', method: '', heldFor: 5 };
const WAIT = { key: 'lock:order', type: 'reentrant', group: '', method: '', waiters: 1, waitedFor: 5 };
/** A value that cannot be converted to a string. */
const NO_TEXT = { toString: 1, valueOf: 1 };

describe('what somebody else has written as the record of a client', () => {
  let redis: RedisServer;
  let forger: Redis;
  let place: Place;
  beforeAll(async () => {
    redis = await startRedis({ args: ['--databases', '100'] });
    forger = redis.client();
    place = await Place.open('memory');
  });
  afterEach(async () => {
    await place.closeServices();
    await forger.flushall();
  });
  afterAll(async () => {
    await place.close();
    await redis.stop();
  });

  const service = (applicationName?: string, connection: Connection = redis.url, runtime?: Runtime) =>
    place.service({ backend: undefined, connection, keyPrefix: 'lock:', applicationName }, runtime);

  /** A lock with an owner of this client. @returns the key of the client's record */
  async function holdAs(clientId: string, name: string, client = forger): Promise<string> {
    await client.hset(`lock:${name}`, `${clientId}:1`, 1);
    await client.pexpire(`lock:${name}`, 120_000);
    await client.zadd(LIST, String(Date.now() + 120_000), clientId);
    return `nestjs_redis_lock_client:{${clientId}}`;
  }

  const record = (fields: Readonly<Record<string, unknown>>) => async (key: string, client: Redis) => {
    await client.hset(key, { ...GOOD, at: Date.now(), ...fields });
  };
  const hold = (fields: object) => record({ holds: JSON.stringify([{ ...HOLD, ...fields }]) });
  const wait = (fields: object) => record({ waits: JSON.stringify([{ ...WAIT, ...fields }]) });

  const BAD: Readonly<Record<string, Forge>> = {
    'with an application of a megabyte': record({ application: 'a'.repeat(1_000_000) }),
    'with an application that writes to the terminal': record({ application: '\x1b[2J' }),
    'with an application of two lines': record({ application: 'a\nERROR b' }),
    'without an application': record({ application: '' }),
    'with a host of two lines': record({ host: 'a\nERROR b' }),
    'with a host of a megabyte': record({ host: 'a'.repeat(1_000_000) }),
    'with a version of two lines': record({ version: '1\n2' }),
    'with a pid that is no number': record({ pid: '[object Object]' }),
    'with a count that is not whole': record({ held: '0.5' }),
    'with a count that is negative': record({ waiting: '-1' }),
    'with a wait that does not end': record({ longestWait: 'Infinity' }),
    'that began at no time': record({ since: '1e300' }),
    'with holds that are no JSON': record({ holds: '[{' }),
    'with holds that are no list': record({ holds: '{"length":7}' }),
    'with holds of two megabytes': record({ holds: JSON.stringify([{ ...HOLD, key: 'a'.repeat(2_000_000) }]) }),
    'that is a text': (key, client) => client.set(key, 'text'),
    'that is a list': (key, client) => client.rpush(key, 'a', 'b'),
  };

  /** The record itself may be shown, without the forged part. */
  const PARTLY_BAD: Readonly<Record<string, Forge>> = {
    'a method that is no text': hold({ method: NO_TEXT }),
    'a group that is no text': hold({ group: NO_TEXT }),
    'a key that is no text': hold({ key: 7 }),
    'no key': hold({ key: undefined }),
    'an owner that is no text': hold({ owner: null }),
    'a type that is no text': hold({ type: ['read'] }),
    'a time that is no number': hold({ heldFor: 'long' }),
    'a method of 100,000 characters': hold({ method: 'a'.repeat(100_000) }),
    'a hold that is no object': record({ holds: '[null, 7, "text", []]' }),
    'a wait with a key that is no text': wait({ key: NO_TEXT }),
    'a wait with a method that is no text': wait({ method: NO_TEXT }),
    'a wait with waiters that are no number': wait({ waiters: '1000000' }),
    'a wait that is no object': record({ waits: '[null, 7, "text", []]' }),
    'a time of writing that is no number': record({ at: 'now' }),
    'thousands of fields': async (key, client) => {
      await record({})(key, client);
      await client.hset(key, Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`field ${n}`, n])));
    },
  };

  const all = [
    ...Object.entries(BAD).map(([what, forge]) => ({ what, forge, isSeen: false })),
    ...Object.entries(PARTLY_BAD).map(([what, forge]) => ({ what: `with ${what}`, forge, isSeen: true })),
  ];

  async function expectTheRest(forge: Forge, isSeen: boolean, database: number): Promise<void> {
    const client = redis.client({ db: database });
    const clientId = toClientId(randomUUID());
    const key = await holdAs(clientId, 'forged', client);
    await forge(key, client);
    const { locks: good } = service('good', `${redis.url}/${database}`);
    const { locks: viewer } = service(undefined, `${redis.url}/${database}`);
    const lease = await good.acquire('order', { group: 'payments' });
    await until(async () => (await client.zcard(LIST)) === 2, 30_000);

    const clients = await viewer.clients();
    expect(clients.map(({ application }) => application).sort()).toEqual(isSeen ? ['forger', 'good'] : ['good']);
    const forged = clients.find(({ application }) => application === 'forger');
    if (isSeen) expect(forged).toMatchObject({ pid: 7, since: 1_700_000_000_000, held: 1, holds: [], waits: [] });
    const listed = (await viewer.list()).locks;
    expect(listed.map(({ name }) => name).sort()).toEqual(['forged', 'order']);
    expect(listed.find(({ name }) => name === 'order')?.owners[0].client).toMatchObject({ application: 'good' });
    expect((await viewer.inspect('forged')).owners).toMatchObject([{ owner: `${clientId}:1` }]);
    const snapshot = await takeSnapshot(viewer, undefined);
    expect(JSON.stringify(snapshot).length).toBeLessThan(10_000);

    const busy = await viewer.acquire('forged', { waitTime: '1500ms' }).catch((error) => error);
    expect(busy.name).toBe('LockBusyError');
    expect(busy.message.length).toBeLessThan(500);
    expect(busy.message).not.toMatch(/\p{Cc}/u);
    await lease.release();
  }

  describe('in a record', () => {
    /** Each runs in its own database, all at once, because each takes seconds, most of which it waits. */
    let shown: readonly PromiseSettledResult<void>[];
    beforeAll(async () => {
      shown = await Promise.allSettled(all.map(({ forge, isSeen }, index) => expectTheRest(forge, isSeen, index + 1)));
    });

    it.each(all.map(({ what }, index) => ({ what, index })))(
      '$what: everything else is shown nevertheless',
      ({ index }) => {
        const result = shown[index];
        if (result.status === 'rejected') throw result.reason;
      },
    );
  });

  it('does not keep the command line from showing the others', async () => {
    for (const forge of [BAD['that is a text'], PARTLY_BAD['a method that is no text'], BAD['that began at no time']])
      await forge(await holdAs(toClientId(randomUUID()), 'forged'), forger);
    const { locks } = service('good');
    const lease = await locks.acquire('order');
    await until(async () => (await forger.zcard(LIST)) === 4, 15_000);
    expect((await runCli(['ls'], redis.url)).stdout).toMatch(/^order .*good on /m);
    const { stdout, code } = await runCli(['clients'], redis.url);
    expect({ good: /^good /m.test(stdout), code }).toEqual({ good: true, code: 0 });
    await lease.release();
  });

  it('does not keep locks from being listed where the list of clients is something else', async () => {
    await forger.set(LIST, 'text');
    const { locks } = service();
    const lease = await locks.acquire('order');
    expect((await locks.list()).locks).toMatchObject([{ name: 'order', owners: [{ owner: lease.owner }] }]);
    expect((await locks.inspect('order')).locked).toBe(true);
    await lease.release();
  });

  it('is not read where the list of clients has something that no client is called', async () => {
    const end = String(Date.now() + 60_000);
    await forger.zadd(LIST, end, 'a'.repeat(10_000), end, 'a}:{b', end, '');
    const { locks } = service('good');
    const lease = await locks.acquire('order');
    await until(async () => (await locks.clients()).length === 1, 15_000);
    expect(await forger.keys('nestjs_redis_lock_client:*')).toHaveLength(1);
    await lease.release();
  });

  it('does not end a process that waits for the lock for long', async () => {
    const key = await holdAs(toClientId(randomUUID()), 'forged');
    await PARTLY_BAD['a method that is no text'](key, forger);
    await forger.hset(key, { holds: JSON.stringify([{ ...HOLD, owner: `${key.slice(26, -1)}:1`, method: NO_TEXT }]) });
    const { locks, log } = service(undefined, redis.url, impatientRuntime);
    const stop = new AbortController();
    const waiting = locks.acquire('forged', { signal: stop.signal }).catch(() => {});
    await until(() => log.warnings.some((line) => line.includes('over 30 s')), 75_000);
    expect(log.warnings.join()).toContain('held by forger on web-1');
    stop.abort();
    await waiting;
  });
});
