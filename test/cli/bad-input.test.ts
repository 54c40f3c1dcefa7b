import type { Redis } from 'ioredis';
import type { Lease } from '../../lib/engine/terms/lease.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { runCli } from './run-cli.js';

describe('a command line that is wrong', () => {
  let redis: RedisServer;
  let locks: LockService;
  let admin: Redis;
  let lease: Lease;
  beforeAll(async () => {
    redis = await startRedis();
    admin = redis.client();
    locks = createLockService({ connection: redis.url });
    lease = await locks.acquire('order:42');
  });
  afterAll(async () => {
    await lease?.release();
    await locks.close();
    await redis.stop();
  });

  it.each([
    { args: [], says: /^The command is missing: give one of ls, inspect, watch, clients, release, doctor/ },
    { args: ['relaese', 'order:42', '--yes', '--reason', 'dead'], says: /^There is no 'relaese': give one of ls/ },
    {
      args: ['redis://:secret@host', 'ls'],
      says: /^A URL is given by --url or the variable REDIS_URL, not as a command\. /,
    },
    { args: ['toString'], says: /^There is no 'toString'/ },
    { args: ['ls', '--frobnicate'], says: /^Unknown option '--frobnicate'/ },
    { args: ['ls', '--url'], says: /^Option '--url <value>' argument missing/ },
    { args: ['ls', '--yes'], says: /^'ls' has no option --yes/ },
    { args: ['ls', 'order:*'], says: /^'ls' takes no name; patterns are given by --match/ },
    {
      args: ['ls', '--cursor', 'not-a-cursor'],
      says: /cursor 'not-a-cursor' is not one that list\(\) of this service/,
    },
    { args: ['ls', '--count', 'many'], says: /^--count is 'many'; it must be a whole number/ },
    { args: ['ls', '--match', ''], says: /match is ''; it must be a pattern/ },
    { args: ['ls', '--prefix', '{'], says: /^--prefix must be a string whose braces are balanced/ },
    { args: ['ls', '--prefix', 'nestjs_redis_lock_'], says: /^--prefix begins with 'nestjs_redis_lock_', as the keys/ },
    { args: ['doctor', '--prefix', 'p'.repeat(513)], says: /^--prefix has 513 bytes; it may have at most 512/ },
    { args: ['watch', '--interval', 'soon'], says: /--interval/ },
    { args: ['watch', '--json'], says: /^'watch' has no option --json/ },
    { args: ['inspect'], says: /^'inspect' needs the name of a lock/ },
    { args: ['inspect', ''], says: /^'inspect' needs the name of a lock/ },
    { args: ['inspect', 'order:{'], says: /'order:\{' has an unbalanced or empty brace/ },
    { args: ['release'], says: /^'release' needs the name of a lock/ },
    { args: ['release', 'order:42', '--yes'], says: /^Nothing was released\. Give the reason with --reason TEXT/ },
    { args: ['release', 'order:42', '--yes', '--reason', '  '], says: /^Nothing was released\. Give the reason/ },
    { args: ['release', 'order:42', '--reason', 'dead'], says: /^Nothing was released\. .*add --yes/ },
    { args: ['release', 'order:42', 'order:43', '--yes', '--reason', 'dead'], says: /^'release' takes one name/ },
    { args: ['ls', '--cluster'], says: /is not a node of a cluster\. Leave out --cluster/ },
    { args: ['ls', '--url', ''], says: /^The address of Redis is missing: give --url/ },
    { args: ['ls', '--url', 'http://secret@host'], says: /^--url: The URL of the connection is not a Redis URL/ },
  ])('$args: ends with 2, says what is wrong, and releases nothing', async ({ args, says }) => {
    const keys = await keysOf(admin);
    const { code, stdout, stderr } = await runCli(args, redis.url);
    expect(stderr).toMatch(says);
    expect(stderr).not.toContain('secret');
    expect(stderr).not.toContain('    at ');
    expect(code).toBe(2);
    if (args[2] !== '--reason' && !args.includes('--json')) expect(stdout).toBe('');
    expect(lease.held).toBe(true);
    expect(await locks.isLocked('order:42')).toBe(true);
    expect(await keysOf(admin)).toEqual(keys);
  });

  it('fails if no Redis is named, instead of using another one', async () => {
    const { code, stderr } = await runCli(['ls']);
    expect(stderr).toMatch(/^The address of Redis is missing: give --url redis:\/\/host:6379, or set REDIS_URL/);
    expect(code).toBe(2);
  });

  it('is answered with one JSON document if JSON was requested', async () => {
    const { code, stdout } = await runCli(['relaese', '--json'], redis.url);
    expect(JSON.parse(stdout)).toEqual({ error: { kind: 'usage', message: expect.stringMatching(/'relaese'/) } });
    expect(code).toBe(2);
  });

  it('is explained by --help', async () => {
    const { code, stdout, stderr } = await runCli(['--help']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('nestjs-redis-lock release NAME --yes --reason TEXT');
  });
});

/** The record of a client is left out, because it may appear and disappear by itself. */
async function keysOf(admin: Redis): Promise<string[]> {
  return (await admin.keys('*')).filter((key) => !key.startsWith('nestjs_redis_lock_client')).sort();
}
