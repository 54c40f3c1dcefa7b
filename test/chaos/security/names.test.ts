import { Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { LockKeyError } from '../../../lib/engine/errors.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { startApp } from '../../nest/support/start-app.js';
import { isClientRecord } from '../../support/left-behind.js';
import { errorOf } from '../../support/section.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

const HOSTILE: readonly [string, string][] = [
  ['braces', '{a}'],
  ['an open brace', '{'],
  ['a closed one first', '}{'],
  ['empty braces', '{}'],
  ['newlines', 'a\r\nDEL lock:a\r\n'],
  ['NUL', 'a\0b'],
  ['a separator', 'a:b'],
  ['an encoded separator', 'a%3Ab'],
  ['glob characters', '*?[a-z]\\'],
  ['a Cyrillic look-alike', 'р'],
  ['a composed letter', '\u00e9'],
  ['a decomposed letter', 'e\u0301'],
  ['an invisible space', 'a\u200b'],
  ['a direction override', '\u202ea'],
  ['__proto__', '__proto__'],
  ['constructor', 'constructor'],
  ['toString', 'toString'],
  ['a Lua end of string', "']] redis.call('FLUSHALL') --[['"],
  ['a template', '#<this.secret>'],
  ['an emoji', '👩‍👩‍👧'],
];

@Injectable()
class Orders {
  readonly secret = 'not for keys';
  inside = new Set<string>();

  @DistributedLock('order:#<args[0]>:line')
  async ship(part: unknown, body: () => Promise<void> = async () => {}) {
    await body();
    return part;
  }

  @DistributedLock('two:#<args[0]>:#<args[1]>')
  async pair(_one: string, _other: string, body: () => Promise<void>) {
    await body();
  }
}

describe('names that come from an attacker', () => {
  let redis: RedisServer;
  let watch: Redis;
  let app: Awaited<ReturnType<typeof startApp>>;
  let orders: Orders;

  beforeAll(async () => {
    redis = await startRedis();
    watch = redis.client();
    app = await startApp({ providers: [Orders] }, { connection: redis.url });
    orders = app.get(Orders);
    await watch.set('yours', 'untouched');
  });
  afterAll(async () => {
    await app?.close();
    await redis?.stop();
  });
  afterEach(async () => {
    const left = (await watch.keys('*')).filter((key) => key !== 'nestjs_redis_lock_clock' && !isClientRecord(key));
    expect(left).toEqual(['yours']);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it.each(HOSTILE)('%s in a part of a template locks exactly one key', async (_, part) => {
    let keys: string[] = [];
    await orders.ship(part, async () => {
      keys = await watch.keys('lock:*');
    });
    expect(keys).toHaveLength(1);
    expect(keys[0]).toMatch(/^lock:order:[^:{}]+:line$/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them
    expect(keys[0]).not.toMatch(/[\u0000-\u001f]/);
  });

  it('all of them lock keys that differ, at the same time', async () => {
    let most = 0;
    let inside = 0;
    let all!: () => void;
    const everybody = new Promise<void>((resolve) => {
      all = resolve;
    });
    await Promise.all(
      HOSTILE.map(([, part]) =>
        orders.ship(part, async () => {
          most = Math.max(most, ++inside);
          if (inside === HOSTILE.length) all();
          await everybody;
        }),
      ),
    );
    expect(most).toBe(HOSTILE.length);
  });

  it('the boundary between two parts cannot be shifted', async () => {
    await orders.pair('a:b', 'c', () => orders.pair('a', 'b:c', async () => {}));
    await orders.pair('a%3Ab', 'c', () => orders.pair('a:b', 'c', async () => {}));
  });

  it.each<[string, unknown]>([
    ['1 MB', 'x'.repeat(2 ** 20)],
    ['1 MB of braces', '{'.repeat(2 ** 20)],
    ['half a character', '\ud800'],
    ['an object that pretends to be a string', { toString: () => 'a', __proto__: { polluted: true } }],
    ['an array', ['a']],
    ['parsed JSON with __proto__', JSON.parse('{"__proto__": {"polluted": true}}')],
    ['nothing', undefined],
  ])('%s is refused before Redis is asked, by a short error', async (_, part) => {
    const error = await errorOf(orders.ship(part));
    expect(error).toBeInstanceOf(LockKeyError);
    expect(error.message.length).toBeLessThan(500);
  });

  it.each(HOSTILE.filter(([, name]) => !/[{}]/.test(name)))(
    '%s as a whole name is taken verbatim by LockService',
    async (_, name) => {
      await app.locks.withLock(name, async (lease) => {
        expect(lease.name).toBe(name);
        expect(await watch.exists(`lock:${name}`)).toBe(1);
        expect((await app.locks.inspect(name)).owners).toHaveLength(1);
        expect(await app.locks.tryAcquire(`${name}'`).then((other) => other?.release())).toBeUndefined();
      });
      const fair = await app.locks.acquire(name, { type: 'fair' });
      const waiting = app.locks.acquire(name, { type: 'fair' });
      await fair.release();
      await (await waiting).release();
    },
  );

  it.each(['{', '}{', '{}', 'a{}b', '{a', 'x'.repeat(2 ** 20)])(
    'a whole name whose braces mislead a cluster, or that is too long, is refused by LockService',
    async (name) => {
      const calls = [
        app.locks.acquire(name),
        app.locks.inspect(name),
        app.locks.forceRelease(name),
        app.locks.acquire(['fine', name]),
        (async () => app.locks.getSemaphore(name).trySetPermits(1))(),
      ];
      for (const result of await Promise.allSettled(calls)) {
        expect(result).toMatchObject({ status: 'rejected', reason: { name: 'LockKeyError' } });
        expect((result as PromiseRejectedResult).reason.message.length).toBeLessThan(500);
      }
    },
  );
});
