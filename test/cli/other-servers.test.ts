import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import type { Redis } from 'ioredis';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { type RedisSentinel, startSentinel } from '../support/servers/redis-sentinel.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { runCli } from './run-cli.js';

const logger = { warn: () => {}, error: () => {} };

describe('a database that cannot be used', () => {
  let redis: RedisServer;
  let admin: Redis;
  let locks: LockService;
  beforeAll(async () => {
    redis = await startRedis();
    admin = redis.client();
    locks = createLockService({ connection: redis.url, logger });
    await admin.call('ACL', 'SETUSER', 'no-select', 'on', '>a-password', '~*', '&*', '+@all', '-select');
  });
  afterAll(async () => {
    await locks?.close();
    await redis?.stop();
  });

  it.each([
    { what: 'a number that is too large', path: '/99', user: '', says: /database 99 cannot be used .*out of range/ },
    { what: 'a number in a parameter', path: '?db=99', user: '', says: /database 99 cannot be used .*out of range/ },
    {
      what: 'a user without +select',
      path: '/3',
      user: 'no-select:a-password@',
      says: /database 3 cannot be used .*Give the user \+select/,
    },
  ])('$what: every command is refused, and the locks of database 0 stay', async ({ path, user, says }) => {
    const lease = await locks.acquire('order:42');
    const url = redis.url.replace('//', `//${user}`) + path;
    const release = ['release', 'order:42', '--yes', '--reason', 'dead'];
    for (const args of [['ls'], ['inspect', 'order:42'], ['clients'], ['doctor'], release]) {
      const { code, stdout, stderr } = await runCli(args, url);
      expect(stderr).toMatch(says);
      expect({ args, code, stdout }).toEqual({ args, code: 4, stdout: '' });
    }
    expect(await locks.isLocked('order:42')).toBe(true);
    await lease.release();
  });

  it('the same user may look at database 0', async () => {
    const lease = await locks.acquire('order:42');
    const { code, stdout } = await runCli(['ls'], redis.url.replace('//', '//no-select:a-password@'));
    expect(stdout).toContain('order:42');
    expect(code).toBe(0);
    await lease.release();
  });
});

describe('a server that needs other settings', () => {
  it.each([
    {
      what: 'a password',
      args: ['--requirepass', 'x'],
      scheme: 'redis',
      says: /NOAUTH.*Redis requires a password: redis:\/\/user:/,
    },
    { what: 'no TLS', args: [], scheme: 'rediss', says: /if the server does not use TLS, write redis:\/\// },
  ])('$what: the error says so', async ({ args, scheme, says }) => {
    const redis = await startRedis({ args });
    const { code, stdout, stderr } = await runCli(['ls'], redis.url.replace('redis', scheme));
    expect(stderr).toMatch(says);
    expect({ code, stdout }).toEqual({ code: 4, stdout: '' });
    await redis.stop();
  });

  it('a certificate of an unknown CA: the error says how to name it', async () => {
    const redis = await startRedis();
    const folder = redis.folder;
    const subject = ['-nodes', '-days', '2', '-subj', '/CN=localhost'];
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'rsa:2048', '-keyout', `${folder}/k`, '-out', `${folder}/c`, ...subject],
      {
        stdio: 'ignore',
      },
    );
    const secure = createServer({ key: readFileSync(`${folder}/k`), cert: readFileSync(`${folder}/c`) });
    secure.on('tlsClientError', () => {});
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
    const { port } = secure.address() as AddressInfo;
    const { code, stderr } = await runCli(['ls'], `rediss://127.0.0.1:${port}`);
    expect(stderr).toMatch(/NODE_EXTRA_CA_CERTS/);
    expect(code).toBe(4);
    secure.close();
    await redis.stop();
  });
});

describe('a replica', () => {
  let master: RedisServer;
  let replica: RedisServer;
  let locks: LockService;
  beforeAll(async () => {
    const atOnce = ['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0'];
    master = await startRedis({ args: atOnce });
    replica = await startRedis({ args: ['--replicaof', `127.0.0.1 ${master.port}`, ...atOnce] });
    locks = createLockService({ connection: master.url, applicationName: 'shop-2', logger });
    await until(async () => (await replica.client().info('replication')).includes('master_link_status:up'));
  });
  afterAll(async () => {
    await locks?.close();
    await Promise.all([replica?.stop(), master?.stop()]);
  });

  it('shows its locks and clients, and says that it is one', async () => {
    const lease = await locks.acquire('order:42');
    await until(async () => (await locks.clients()).length === 1, 20_000);
    // A client that has died: its record is removed by the next one that writes.
    await master.client().zadd('nestjs_redis_lock_clients', 1, 'dead');
    await until(async () => (await replica.client().zcard('nestjs_redis_lock_clients')) === 2);
    for (const args of [['ls'], ['inspect', 'order:42'], ['clients']]) {
      const { code, stdout, stderr } = await runCli(args, replica.url);
      expect(stderr).toBe(
        `redis 127.0.0.1:${replica.port} is a replica of 127.0.0.1:${master.port}, and may lag behind it\n`,
      );
      expect(stdout).toContain('shop-2 ');
      expect(stdout).not.toContain('dead');
      expect({ args, code }).toEqual({ args, code: 0 });
    }
    await lease.release();
  });

  it('does not release, even if it is writable, but names its master', async () => {
    const lease = await locks.acquire('order:42');
    await until(() => replica.client().exists('lock:order:42'));
    await replica.client().config('SET', 'replica-read-only', 'no');
    const { code, stdout, stderr } = await runCli(['release', 'order:42', '--yes', '--reason', 'dead'], replica.url);
    expect(stderr).toContain(
      `is a replica. Nothing was released. Run the command on its master, 127.0.0.1:${master.port}`,
    );
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(await replica.client().exists('lock:order:42')).toBe(1);
    await lease.release();
  });

  it('says so if it has lost its master', async () => {
    await replica.client().replicaof('127.0.0.1', 1);
    const { stderr } = await runCli(['ls'], replica.url);
    expect(stderr).toMatch(
      /is a replica of 127\.0\.0\.1:1, and is not connected to it, so this data may be out of date\n$/,
    );
  });
});

describe('looking', () => {
  it.each(['ls', 'clients', 'inspect'])('%s changes nothing', async (verb) => {
    const redis = await startRedis();
    const admin = redis.client();
    await admin.hset('lock:order:42', 'a-client:1', 1);
    await admin.zadd('nestjs_redis_lock_clients', 1, 'dead');
    const changes = async () => /rdb_changes_since_last_save:(\d+)/.exec(await admin.info('persistence'))?.[1];
    const before = await changes();
    const { code } = await runCli(verb === 'inspect' ? [verb, 'order:42'] : [verb], redis.url);
    expect(code).toBe(0);
    expect(await changes()).toBe(before);
    await redis.stop();
  });
});

describe('a Sentinel', () => {
  let sentinel: RedisSentinel;
  beforeAll(async () => {
    sentinel = await startSentinel();
  });
  afterAll(() => sentinel?.stop());

  it.each([['doctor'], ['ls'], ['inspect', 'order:42'], ['clients'], ['ls', '--cluster']])(
    'is refused by %s, which names the master',
    async (...args) => {
      const master = await sentinel.master();
      const { code, stdout, stderr } = await runCli(args, sentinel.sentinels[0].url);
      expect(stderr).toContain(
        `is a Sentinel, which has no locks. Give the URL of the master that it watches: 127.0.0.1:${master.port} ('mymaster')`,
      );
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    },
  );
});
