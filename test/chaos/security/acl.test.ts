import { readdirSync, readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { ACL_RECIPE } from './acl-recipe.js';
import { TIMES, useEverything } from './everything.js';

const { keys, channels, channelsWithoutFairLocks, connection, scripts, replicas, cluster } = ACL_RECIPE;
const STANDALONE: readonly string[] = [...keys, ...channels, ...connection, ...scripts];
const LOCKS = 'lib/backends/redis/scripts';
const silent = { warn: () => {}, error: () => {} };

describe('a user with the rights of the recipe and no others', () => {
  let redis: RedisServer;
  let admin: Redis;

  beforeAll(async () => {
    redis = await startRedis({ args: ['--acllog-max-len', '10000', '--repl-diskless-sync-delay', '0'] });
    admin = redis.client();
  });
  afterAll(() => redis.stop());
  beforeEach(() => admin.acl('LOG', 'RESET'));

  /** Returns what failed for a user with these rules. `seen`: a condition that may take a moment to become true. */
  async function use(user: string, rules: readonly string[], options = {}, seen: () => unknown = () => true) {
    await admin.call('ACL', 'SETUSER', user, 'reset', 'on', '>a-password', ...rules);
    const url = redis.url.replace('//', `//${user}:a-password@`);
    const services = [1, 2].map(() =>
      createLockService({
        connection: url,
        ...TIMES,
        commandTimeout: 5_000,
        shutdownTimeout: 100,
        logger: silent,
        ...options,
      }),
    );
    const errors = await useEverything(services[0], services[1], user);
    await until(seen, 3_000).catch(() => {}); // subscriptions end a moment after their last waiter
    await Promise.all(services.map((locks) => locks.close()));
    return errors;
  }

  it('can use every lock and every synchronizer, and sends nothing that is denied', async () => {
    expect(await use('locker', STANDALONE)).toEqual([]);
    expect(await denials(admin)).toEqual([]);
  });

  it('can also use minReplicas, with the right to WAIT', async () => {
    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(redis.port)] });
    try {
      await until(async () => (await admin.info('replication')).includes('state=online'));
      // A new replica may take a second for its first answer, which is longer than the leases here.
      await admin.set('first', 1);
      expect(await admin.wait(1, 20_000)).toBe(1);
      expect(await use('careful', [...STANDALONE, ...replicas], { minReplicas: 1 })).toEqual([]);
      expect(await denials(admin)).toEqual([]);
    } finally {
      await replica.stop();
    }
  });

  it('has the right to exactly the commands that the scripts call', () => {
    const texts = readdirSync(LOCKS, { recursive: true })
      .filter((file) => String(file).endsWith('.lua') && !String(file).endsWith('knows-command-1.lua'))
      .map((file) => readFileSync(`${LOCKS}/${file}`, 'utf8'));
    const called = texts.flatMap((text) =>
      [...text.matchAll(/(?:redis\.p?call\(|\bsetClock\()'(\w+)'/g)].map(([, command]) => `+${command.toLowerCase()}`),
    );
    expect(scripts.map((rule) => rule.split('|')[0]).sort()).toEqual([...new Set([...called, '+publish'])].sort());
  });

  it('can use everything without the right to count who listens', async () => {
    expect(await use('countless', without('+pubsub|numsub'))).toEqual([]);
    expect(new Set(await denials(admin))).toEqual(new Set([expect.stringMatching(/^countless: command pubsub/)]));
  });

  it('can read and write nothing else', async () => {
    await admin.call('ACL', 'SETUSER', 'locker', 'reset', 'on', '>a-password', ...STANDALONE);
    const client = redis.client({ username: 'locker', password: 'a-password' });
    await expect(client.get('customer:1')).rejects.toThrow('NOPERM');
    await expect(client.eval("return redis.call('GET', 'customer:1')", 0)).rejects.toThrow(/NOPERM|can't access/);
    await expect(client.flushall()).rejects.toThrow('NOPERM');
    await expect(client.config('GET', '*')).rejects.toThrow('NOPERM');
    await expect(client.keys('*')).rejects.toThrow('NOPERM');
  });

  it('cannot use fair locks without all channels, but everything else with the channels of the locks', async () => {
    const rules = [...without('&*'), ...channelsWithoutFairLocks];
    const errors = await use('deaf', rules);
    expect(errors.filter((error) => !/:fair'/.test(String(error)))).toEqual([]);
    expect(errors).toHaveLength(1);
    expect(new Set(await denials(admin))).toEqual(new Set([expect.stringMatching(/^deaf: channel .*:deaf:f/)]));
  });

  it('is warned once, and still holds its locks, if it may not listen to its own channel', async () => {
    const rules = [...without('&*'), '&redisson_*'];
    await admin.call('ACL', 'SETUSER', 'own-deaf', 'reset', 'on', '>a-password', ...rules);
    const errors: string[] = [];
    const logger = { warn: silent.warn, error: (message: string) => void errors.push(message) };
    const locks = createLockService({ connection: redis.url.replace('//', '//own-deaf:a-password@'), logger });
    // It listens only after it has held a lock for a while.
    await locks.withLock('own-deaf:held', () => until(() => errors.length > 0));
    for (let i = 0; i < 5; i++) await locks.withLock(`own-deaf:${i}`, async () => {});
    expect(errors).toEqual([
      expect.stringMatching(
        /: cannot subscribe to nestjs_redis_lock_client:\{.*\}, so a forced release is noticed only at the next renewal: NOPERM/,
      ),
    ]);
    await locks.close();
  });

  it('gets an error at once that names the missing right, also inside a script', async () => {
    await admin.call('ACL', 'SETUSER', 'short', 'reset', 'on', '>a-password', ...without('+pexpire'));
    const locks = createLockService({ connection: redis.url.replace('//', '//short:a-password@'), logger: silent });
    await expect(locks.acquire('order')).rejects.toThrow(/docs\/permissions.md has the permissions/);
    await locks.close();
  });

  // A PING is sent only while a caller waits for two seconds.
  it.each(['+eval', ...[...keys, ...connection].filter((rule) => rule !== '+ping' && rule !== '+eval')])(
    'needs %s: without it something is denied',
    async (rule) => {
      if (rule === '+eval') await admin.script('FLUSH');
      const user = `without-${STANDALONE.indexOf(rule)}`;
      const denied = async () => (await denials(admin)).some((denial) => denial.startsWith(`${user}:`));
      await use(user, without(rule), {}, denied);
      expect(await denied()).toBe(true);
    },
  );
});

describe('on a cluster', () => {
  let nodes: RedisCluster;
  beforeAll(async () => {
    nodes = await startCluster();
  }, 60_000);
  afterAll(() => nodes.stop());

  it('the recipe with the rights for clusters is enough', async () => {
    const admins = nodes.servers.map((server) => server.client());
    const rules = [...STANDALONE, ...cluster];
    for (const admin of admins) {
      await admin.call('ACL', 'SETUSER', 'locker', 'reset', 'on', '>a-password', ...rules);
      await admin.acl('LOG', 'RESET');
    }
    const options = { redisOptions: { username: 'locker', password: 'a-password' } };
    const services = [1, 2].map(() =>
      createLockService({
        connection: { nodes: nodes.nodes, options },
        ...TIMES,
        logger: silent,
      }),
    );
    // A busy machine may take a while to connect to six nodes.
    for (const locks of services) await (await locks.acquire('first')).release();
    const errors = await useEverything(services[0], services[1], 'cluster');
    await Promise.all(services.map((locks) => locks.close()));
    expect(errors).toEqual([]);
    for (const admin of admins) expect(await denials(admin)).toEqual([]);
  });
});

function without(rule: string): string[] {
  return STANDALONE.filter((each) => each !== rule);
}

/** `user: reason object`, for everything that was denied. */
async function denials(admin: Redis): Promise<string[]> {
  const log = (await admin.acl('LOG')) as unknown[];
  return log.map((entry) => {
    const fields = Array.isArray(entry) ? pairs(entry) : new Map(Object.entries(entry as object));
    return `${fields.get('username')}: ${fields.get('reason')} ${fields.get('object')}`;
  });
}

function pairs(flat: readonly unknown[]): Map<unknown, unknown> {
  return new Map(flat.flatMap((key, i) => (i % 2 === 0 ? [[key, flat[i + 1]] as const] : [])));
}
