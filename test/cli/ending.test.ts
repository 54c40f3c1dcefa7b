import { readFileSync } from 'node:fs';
import type { Lease } from '../../lib/engine/terms/lease.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { runProgram, startCli } from './run-cli.js';

describe('how the program ends', () => {
  let redis: RedisServer;
  let locks: LockService;
  let lease: Lease;
  beforeAll(async () => {
    redis = await startRedis();
    locks = createLockService({ connection: redis.url, logger: { warn: () => {}, error: () => {} } });
    lease = await locks.acquire('order:42');
  });
  afterAll(async () => {
    await lease?.release().catch(() => {}); // released by force
    await locks?.close();
    await redis?.stop();
  });

  it.each([
    ['ls'],
    ['inspect', 'order:42'],
    ['clients'],
    ['watch'],
    ['doctor'],
    ['release', 'order:42', '--yes', '--reason', 'dead'],
  ])('%s never ends with 0 before it has an answer', async (...args) => {
    const { code, stdout, stderr } = await runProgram(args, redis.url, { preload: './never-connects.mjs' });
    expect(stderr).toMatch(/^The program ended without an answer/);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  });

  it('says so in a JSON document, too', async () => {
    const { code, stdout } = await runProgram(['ls', '--json'], redis.url, { preload: './never-connects.mjs' });
    expect(JSON.parse(stdout)).toEqual({
      error: { kind: 'failure', message: expect.stringMatching(/^The program ended without an answer/) },
    });
    expect(code).toBe(1);
  });

  it('ends with 1 after an uncaught error, and reports it in a JSON document', async () => {
    const { code, stdout, stderr } = await runProgram(['ls', '--json'], redis.url, { preload: './throws-later.mjs' });
    expect(JSON.parse(stdout)).toEqual({ error: { kind: 'failure', message: 'thrown by a listener' } });
    expect(stderr).toContain('throws-later.mjs');
    expect(code).toBe(1);
  });

  it.each([['ls'], ['inspect', 'order:42'], ['clients', '--json'], ['doctor'], ['--help'], ['--version']])(
    '%s ends with 1 if its output cannot be written',
    async (...args) => {
      const { code, stderr } = await runProgram(args, redis.url, { output: '/dev/full' });
      expect(stderr).toMatch(/^The output could not be written: ENOSPC/);
      expect(code).toBe(1);
    },
  );

  it.each([
    { args: ['inspect', 'order:43', '--json'], code: 3 },
    { args: ['inspect', 'order:42'], code: 0 },
    { args: ['relaese', '--json'], code: 2 },
  ])('$args ends as usual if the reader of its output has ended', async ({ args, code }) => {
    const child = startCli(args, redis.url);
    child.stdout.destroy();
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(code);
  });

  it('a release whose output cannot be written reports on standard error what it has done', async () => {
    const args = ['release', 'order:42', '--yes', '--reason', 'the disk is full'];
    const { code, stderr } = await runProgram(args, redis.url, { output: '/dev/full' });
    expect(await locks.isLocked('order:42')).toBe(false);
    expect(stderr).toMatch(/^The output could not be written: ENOSPC/);
    expect(stderr).toContain(lease.owner);
    expect(stderr).toMatch(/^Released by force at \S+Z: the disk is full$/m);
    expect(code).toBe(1);
  });

  it.each(['--version', '-v', 'version'])('%s prints the version', async (argument) => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect(await runProgram([argument])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it.each([['--help'], ['-h'], ['help'], ['help', 'release'], ['release', '--help']])(
    '%s explains how it is used',
    async (...args) => {
      const { code, stdout, stderr } = await runProgram(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toContain('nestjs-redis-lock release NAME --yes --reason TEXT');
    },
  );
});
