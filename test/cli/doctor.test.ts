import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { Redis } from 'ioredis';
import { openTopology } from '../../lib/backends/redis/links/choose-client.js';
import type { Link } from '../../lib/backends/redis/links/link.js';
import type { Finding } from '../../lib/cli/doctor/check.js';
import { checkRights } from '../../lib/cli/doctor/rights-check.js';
import { checkVersion } from '../../lib/cli/doctor/server-checks.js';
import { diagnosticConnection } from '../../lib/cli/redis/diagnostic-connection.js';
import { Server } from '../../lib/cli/redis/server.js';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { runCli } from './run-cli.js';

/** The rules that docs/permissions.md gives a user. */
const RECIPE = (/ACL SETUSER locks on >password([^`]*)/.exec(readFileSync('docs/permissions.md', 'utf8'))?.[1] ?? '')
  .trim()
  .split(/\s+/);

describe('doctor', () => {
  let redis: RedisServer;
  let admin: Redis;
  beforeAll(async () => {
    redis = await startRedis();
    admin = redis.client();
  });
  afterAll(() => redis.stop());

  const urlOf = async (user: string, rules: readonly string[]) => {
    await admin.call('ACL', 'SETUSER', user, 'reset', 'on', '>a-password', ...rules);
    return redis.url.replace('//', `//${user}:a-password@`);
  };

  async function rightsOf(user: string, url: string): Promise<Finding> {
    const topology = openTopology(diagnosticConnection(url, { isCluster: false, connectTimeout: 5_000 }), {
      runtime: nodeRuntime,
      commandTimeout: 5_000,
      onError: () => {},
      onWarning: () => {},
    });
    topology.connect({ ready: () => {}, failed: () => {} });
    try {
      const server = new Server(topology.master(undefined, 0) as Link, topology);
      return await checkRights(server, { keyPrefix: 'lock:', isCluster: false, user });
    } finally {
      await topology.close();
    }
  }

  it('finds nothing to change with the rights of the recipe, and leaves nothing behind', async () => {
    const { code, stdout, stderr } = await runCli(['doctor'], await urlOf('locks', RECIPE));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const check of ['version', 'role', 'memory', 'rights', 'pub/sub', 'scripts', 'clock'])
      expect(stdout).toMatch(new RegExp(`^ {2}ok +${check} `, 'm'));
    expect(await admin.keys('*')).toEqual([]);
  });

  it('notes that most keys of the database are not locks, and so does the log of a service', async () => {
    const cached = Array.from({ length: 1_200 }, (_, n) => [`cache:${n}`, 'x']).flat();
    await admin.mset(cached);
    try {
      const { code, stdout } = await runCli(['doctor'], redis.url);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^ {2}note +keys +database 0 has 1200 keys, and most of them are not locks\. A FLUSHDB/m);
      const warnings: string[] = [];
      const logger = { warn: (message: string) => void warnings.push(message), error: () => {} };
      const locks = createLockService({ connection: redis.url, logger });
      await until(() => warnings.length > 0);
      await locks.close();
      expect(warnings).toEqual([expect.stringMatching(/most of them are not locks.*give locks a database/)]);
    } finally {
      await admin.flushall();
    }
  });

  it('says whether the tests run on this version, as docs/managed-redis.md does', async () => {
    const versionOf = async (info: string) =>
      (await checkVersion({ text: async () => info } as unknown as Server)).message;
    const page = readFileSync('docs/managed-redis.md', 'utf8');
    for (const version of page.matchAll(/\((\d+\.\d+\.\d+)\)/g)) {
      const before = page.slice(0, version.index);
      const isValkey = before.lastIndexOf('Valkey') > before.lastIndexOf('Redis');
      const info = `redis_version:${isValkey ? '7.2.4' : version[1]}\r\n${isValkey ? `valkey_version:${version[1]}\r\n` : ''}`;
      expect(await versionOf(info)).toBe(`${isValkey ? 'Valkey' : 'Redis'} ${version[1]}, a tested version`);
    }
    expect(await versionOf('redis_version:7.4.1\r\n')).toBe(
      'Redis 7.4.1, not among the tested versions: 6.2, 7.0, 8.0',
    );
    expect(await versionOf('redis_version:7.4.0\r\ndragonfly_version:df-v1.25.1\r\n')).toBe(
      'Dragonfly df-v1.25.1, compatible with Redis 7.4.0, not among the tested servers',
    );
  });

  it('names the rights that are missing; with its remedy, all is well', async () => {
    const rules = RECIPE.filter((rule) => !['+hget', '+pexpire', '+psubscribe', '~{lock:*'].includes(rule));
    const url = await urlOf('short', rules);
    const { code, stdout } = await runCli(['doctor'], url);
    expect(code).toBe(5);
    expect(stdout).toMatch(/^ {2}WRONG +rights +user 'short' lacks/m);
    const remedy = /→ (ACL SETUSER short .*)$/m.exec(stdout)?.[1] ?? '';
    expect(remedy.split(' ').slice(3).sort()).toEqual(['+hget', '+pexpire', '+psubscribe', '~{lock:*']);
    const [command, ...args] = remedy.split(' ');
    await admin.call(command, ...args);
    expect((await runCli(['doctor'], url)).code).toBe(0);
    expect(await admin.keys('*')).toEqual([]);
  });

  it.each(RECIPE)('finds out that %s is missing', async (rule) => {
    const rules = RECIPE.filter((each) => each !== rule);
    const found = await rightsOf('lacking', await urlOf('lacking', rules));
    expect(found).toMatchObject({ status: 'wrong', remedy: `ACL SETUSER lacking ${rule}` });
    await admin.flushall();
  });

  it('names the channel of the line if a user without fair locks lacks it', async () => {
    const channels = ['&redisson_*', '&nestjs_redis_lock_client:*'];
    const url = await urlOf('narrow', [...RECIPE.filter((rule) => rule !== '&*'), ...channels]);
    const found = await rightsOf('narrow', url);
    expect(found.message).toBe("user 'narrow' lacks &* &nestjs_redis_lock_turn:*");
    expect(found.remedy).toBe('ACL SETUSER narrow &*');
  });

  it('names the keys of the line if a user with narrow rights lacks them', async () => {
    const ours = ['clock', 'client*', 'waits:*', 'places:*'].map((name) => `~nestjs_redis_lock_${name}`);
    const url = await urlOf('keyless', [...RECIPE.filter((rule) => rule !== '~nestjs_redis_lock_*'), ...ours]);
    const found = await rightsOf('keyless', url);
    expect(found).toMatchObject({ status: 'wrong', remedy: 'ACL SETUSER keyless ~nestjs_redis_lock_turns*' });
    await admin.flushall();
  });

  it('tries only rights of the recipe', async () => {
    const url = await urlOf('exact', RECIPE);
    await admin.acl('LOG', 'RESET');
    expect(await rightsOf('exact', url)).toMatchObject({ status: 'ok' });
    expect(await admin.acl('LOG')).toEqual([]);
  });

  it('warns of a policy that evicts locks', async () => {
    const evicting = await startRedis({ args: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'] });
    const { code, stdout } = await runCli(['doctor'], evicting.url);
    expect(stdout).toMatch(
      /WRONG +memory +maxmemory-policy is 'allkeys-lru'.*\n +→ set maxmemory-policy to 'noeviction'/,
    );
    expect(code).toBe(5);
    const answer = JSON.parse((await runCli(['doctor', '--json'], evicting.url)).stdout);
    expect(answer).toMatchObject({ fit: false, user: 'default' });
    expect(answer.checks.filter(({ status }: { status: string }) => status !== 'ok')).toEqual([
      { check: 'memory', status: 'wrong', message: expect.any(String), remedy: expect.any(String) },
    ]);
    await evicting.stop();
  });

  it('finds that a full Redis is WRONG', async () => {
    const full = await startRedis({ args: ['--maxmemory', '1', '--maxmemory-policy', 'noeviction'] });
    const { code, stdout } = await runCli(['doctor'], full.url);
    expect(stdout).toMatch(
      /WRONG +memory +Redis has no memory left, and refuses new locks: OOM.*\n +→ raise maxmemory/,
    );
    expect(stdout).not.toMatch(/lacks/);
    expect(code).toBe(5);
    await full.stop();
  });

  it('only notes that policy if the memory is not limited', async () => {
    const unlimited = await startRedis({ args: ['--maxmemory-policy', 'allkeys-lru'] });
    const { code, stdout } = await runCli(['doctor'], unlimited.url);
    expect(stdout).toMatch(
      /note +memory +maxmemory-policy is 'allkeys-lru', which does no harm until maxmemory is set/,
    );
    expect(code).toBe(0);
    await unlimited.stop();
  });

  it('finds that a master without the replicas that it needs to write is WRONG', async () => {
    const lonely = await startRedis({ args: ['--min-replicas-to-write', '1'] });
    const { code, stdout } = await runCli(['doctor'], lonely.url);
    expect(stdout).toMatch(
      /WRONG +role +this master refuses to write, and so refuses all locks: NOREPLICAS.*\n +→ bring its replicas back/,
    );
    expect(code).toBe(5);
    await lonely.stop();
  });

  it('finds that a master that cannot save its data is WRONG', async () => {
    const unsaved = await startRedis({ args: ['--save', '3600 1'] });
    const client = unsaved.client();
    await rm(unsaved.folder, { recursive: true });
    await client.bgsave();
    await until(async () => (await client.info('persistence')).includes('rdb_last_bgsave_status:err'));
    expect(await runCli(['ls'], unsaved.url)).toMatchObject({ code: 0, stderr: '' });
    const { code, stdout } = await runCli(['doctor'], unsaved.url);
    expect(stdout).toMatch(/WRONG +role +this master refuses to write, .*: MISCONF.*\n +→ Redis cannot save its data/);
    expect(code).toBe(5);
    await unsaved.stop();
  });

  it('refuses a replica, and names its master', async () => {
    const replica = await startRedis({ args: ['--replicaof', `127.0.0.1 ${redis.port}`] });
    const { code, stdout } = await runCli(['doctor'], replica.url);
    expect(stdout).toMatch(
      new RegExp(`WRONG +role +this server is a replica\\n +→ use its master, 127.0.0.1:${redis.port}`),
    );
    expect(code).toBe(5);
    await replica.stop();
  });

  it('says what to do about a port where no server listens', async () => {
    const { code, stdout, stderr } = await runCli(['doctor', '--json'], 'redis://127.0.0.1:1');
    expect(stderr).toBe(
      'redis 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1: nothing is listening there. Check the host and port, and that Redis is running\n',
    );
    expect(JSON.parse(stdout)).toEqual({ error: { kind: 'unavailable', message: stderr.trim() } });
    expect(code).toBe(4);
  });
});
