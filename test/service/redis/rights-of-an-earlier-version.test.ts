import type { Redis } from 'ioredis';
import type { Runtime } from '../../../lib/backends/runtime.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import { createLockServiceWith } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { Section } from '../../support/section.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { NEVER } from '../../support/time-limits.js';
import { until } from '../../support/until.js';

const KEYS = ['~lock:*', '~{lock:*', '~redisson_lock_*lock:*'];
const OTHER_KEYS = ['clock', 'client*', 'waits:*', 'line:*', 'places:*'].map((name) => `~nestjs_redis_lock_${name}`);
const CHANNELS = ['&redisson_*', '&nestjs_redis_lock_client:*'];
const TURNS = '&nestjs_redis_lock_turn:*';
const RELEASED = 'redisson_lock__channel:{lock:first}';
const PLACES = '~nestjs_redis_lock_turns*';

/** Well below the lease of the holders, until whose end callers sleep that nobody wakes. */
const AT_MOST = 60_000;

describe('services whose user has only the rights of an earlier version', () => {
  let redis: RedisServer;
  let admin: Redis;
  const open: LockService[] = [];
  /** For how long the processes have slept, as far as the clock of the services knows. */
  let passed = 0;

  beforeAll(async () => {
    redis = await startRedis();
    admin = redis.client();
  });
  afterEach(() => Promise.all(open.splice(0).map((locks) => locks.close())));
  afterAll(() => redis.stop());

  const allow = (user: string, ...rules: string[]) => admin.call('ACL', 'SETUSER', user, ...rules);

  /** Services of a user, and what they log. */
  async function services(user: string, count: number, ...rules: string[]) {
    await allow(user, 'reset', 'on', '>secret', '+@all', ...rules);
    const runtime: Runtime = { ...nodeRuntime, monotonic: () => nodeRuntime.monotonic() + passed };
    return Array.from({ length: count }, () => {
      const logged: string[] = [];
      const log = (message: string) => void logged.push(message);
      const locks = createLockServiceWith(runtime, {
        connection: redis.url.replace('//', `//${user}:secret@`),
        waitTime: Infinity,
        watchdogTimeout: NEVER,
        logger: { warn: log, error: log },
      });
      open.push(locks);
      return { locks, logged };
    });
  }

  /** Callers of all services wait behind each other for a few locks. Returns how long they took. */
  async function wait(processes: readonly { readonly locks: LockService }[], permits?: number): Promise<number> {
    const sections = new Map(['one', 'two', 'three'].map((name) => [name, new Section()]));
    const began = nodeRuntime.monotonic();
    await Promise.all(
      processes.flatMap(({ locks }) =>
        [...sections].flatMap(([name, section]) =>
          Array.from({ length: 3 }, async () => {
            for (let n = 0; n < 3; n++) await locks.withLock(name, { permits }, () => section.pass('', 2));
          }),
        ),
      ),
    );
    for (const section of sections.values()) expect(section.most).toBe(permits ?? 1);
    return nodeRuntime.monotonic() - began;
  }

  const inLine = async () => (await admin.pubsub('CHANNELS', 'nestjs_redis_lock_turn:*')) as string[];

  it.each([
    ['the channels', 'channels', [...KEYS, '~nestjs_redis_lock_*', ...CHANNELS], TURNS],
    ['the keys', 'keys', [...KEYS, ...OTHER_KEYS, ...CHANNELS, TURNS], PLACES],
  ])(
    'serve callers that wait without %s of the line, and say once what is missing',
    async (_, user, rules, right) => {
      const processes = await services(user, 4, ...rules);
      expect(await wait(processes)).toBeLessThan(AT_MOST);
      expect(await wait(processes)).toBeLessThan(AT_MOST);
      expect(await wait(processes, 2)).toBeLessThan(AT_MOST);
      const [one, two] = processes;
      const held = await one.locks.acquire('one');
      const next = two.locks.acquire('one');
      await until(async () => (await two.locks.health()).listening);
      expect(await two.locks.health()).toMatchObject({ healthy: true, problems: [] });
      expect(await one.locks.inspect('one')).toMatchObject({ locked: true });
      await held.release();
      await (await next).release();
      const warning = expect.stringMatching(new RegExp(`ACL SETUSER <user> .*${right.replace('*', '[*]')}`));
      expect(two.logged).toEqual([warning]);
      // Others may always have got the locks before they could enter a line.
      for (const { logged } of processes) expect(logged.length === 0 ? [warning] : logged).toEqual([warning]);
    },
    240_000,
  );

  it.each([
    ['the channels', 'late-channels', [...KEYS, '~nestjs_redis_lock_*', ...CHANNELS], TURNS],
    ['the keys', 'late-keys', [...KEYS, ...OTHER_KEYS, ...CHANNELS, TURNS], PLACES],
  ])('wait in line again soon after %s were allowed', async (_, user, rules, right) => {
    const processes = await services(user, 2, ...rules);
    await wait(processes);
    await allow(user, right);
    passed += 60_000;
    const held = await processes[0].locks.acquire('late');
    const next = processes[1].locks.acquire('late');
    await until(async () => {
      const places = await admin.zcard('nestjs_redis_lock_turns:{lock:late}');
      return places === 1 && (await inLine()).length > 0;
    });
    await held.release();
    await (await next).release();
    const refusals = processes.map(({ logged }) => logged.filter((line) => line.includes('ACL SETUSER')).length);
    expect(Math.max(...refusals)).toBe(1);
  });

  it.each([
    ['the channels', [...KEYS, '~nestjs_redis_lock_*', ...CHANNELS]],
    ['the keys', [...KEYS, ...OTHER_KEYS, ...CHANNELS, TURNS]],
  ])('are followed at once by who is first in line, from the second release without %s on', async (what, rules) => {
    const [limited] = await services(`holder-without-${what.replace(' ', '-')}`, 1, ...rules);
    const user = `in-line-beside-${what.replace(' ', '-')}`;
    const [other] = await services(user, 1, ...KEYS, '~nestjs_redis_lock_*', ...CHANNELS, TURNS);
    for (const isKnown of [false, true]) {
      const held = await limited.locks.acquire('first');
      const leaves = new AbortController();
      const next = other.locks.acquire('first', { signal: leaves.signal });
      await until(async () => (await admin.zcard('nestjs_redis_lock_turns:{lock:first}')) === 1);
      await until(async () => (await inLine()).length > 0);
      if (isKnown) await until(async () => Number((await admin.pubsub('NUMSUB', RELEASED))[1]) > 0);
      await held.release();
      if (!isKnown) {
        leaves.abort();
        await next.catch(() => {});
      } else await (await next).release();
    }
    expect(limited.logged).toEqual([expect.stringContaining('ACL SETUSER <user>')]);
  });

  it.each([
    ['channels', ['resetchannels', ...CHANNELS]],
    ['keys', ['resetkeys', ...KEYS, ...OTHER_KEYS]],
  ])('wait without the line when the right to its %s is taken away', async (what, left) => {
    const user = `without-${what}`;
    const processes = await services(user, 4, ...KEYS, '~nestjs_redis_lock_*', ...CHANNELS, TURNS);
    await wait(processes);
    expect(processes.flatMap(({ logged }) => logged)).toEqual([]);
    const held = await processes[0].locks.acquire('one');
    const waiting = wait(processes);
    await until(async () => (await admin.zcard('nestjs_redis_lock_turns:{lock:one}')) === 3);
    await allow(user, ...left);
    await held.release();
    expect(await waiting).toBeLessThan(AT_MOST);
  });
});
