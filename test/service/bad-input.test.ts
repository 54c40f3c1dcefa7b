import { LockConfigurationError, LockError, LockKeyError } from '../../lib/engine/errors.js';
import type { LockOptions } from '../../lib/engine/terms/lock-options.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { RedisLockOptions } from '../../lib/service/redis-lock-options.js';
import { rowLocks } from '../../lib/sql.js';
import { leftovers, NOTHING, openWorld } from '../support/lock-world.js';
import { errorOf } from '../support/section.js';

describe('bad input', () => {
  const world = openWorld('memory');

  it.each<[string, unknown, string]>([
    ['an empty name', '', 'the lock name is empty'],
    ['undefined', undefined, 'must be a string, but it is undefined'],
    ['null', null, 'must be a string, but it is null'],
    ['a number', 42, 'must be a string, but it is 42'],
    ['NaN', Number.NaN, 'must be a string, but it is NaN'],
    ['a symbol', Symbol('order'), 'must be a string, but it is Symbol(order)'],
    ['an object', { id: 1 }, 'must be a string, but it is object Object'],
    ['a function', () => 'order', 'must be a string, but it is function'],
    ['an empty list', [], 'the list of lock names is empty'],
    ['a list with an empty name', ['a', ''], 'the lock name is empty'],
    ['a list with undefined', ['a', undefined], 'but it is undefined'],
    ['a list with a hole', new Array(1), 'but it is undefined'],
    ['a list in a list', [['a']], 'an array inside a list'],
    ['10,001 names', Array.from({ length: 10_001 }, (_, n) => `a:${n}`), 'the list has 10001 lock names; 10000 is the'],
    ['2 KB', 'x'.repeat(2_048), 'has 2048 bytes; 1024 is the limit'],
    ['600 two-byte characters', 'é'.repeat(600), 'has 1200 bytes'],
    ['an opening brace alone', 'order:{1', 'unbalanced or empty brace'],
    ['a closing brace alone', 'order:1}', 'unbalanced or empty brace'],
    ['braces the wrong way round', '}order{', 'unbalanced or empty brace'],
    ['empty braces', 'order:{}', 'unbalanced or empty brace'],
    ['the first half of a character', 'order:\ud83d', 'half a character (a lone surrogate)'],
    ['the second half of a character', 'order:\ude00:1', 'half a character (a lone surrogate)'],
    ['half a character in a list', ['a', '\ud83d'], 'half a character (a lone surrogate)'],
  ])('as a name: %s is refused, and nothing is locked', async (_, name, why) => {
    const process = await world.process();
    const { locks, backend } = process;
    const names = name as string;
    for (const [method, call] of [
      ['acquire()', () => locks.acquire(names)],
      ['tryAcquire()', () => locks.tryAcquire(names)],
      ['withLock()', () => locks.withLock(names, async () => 'in')],
    ] as const) {
      const error = (await errorOf(call() as Promise<unknown>)) as LockKeyError;
      expect(error).toBeInstanceOf(LockKeyError);
      expect(error).toBeInstanceOf(LockError);
      expect(error.message).toContain(why);
      expect(error.message).toMatch(new RegExp(`^${method.replace(/[()]/g, '\\$&')}: `));
    }
    expect(backend.count()).toBe(0);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it.each([
    'undefined',
    'sku:undefined',
    'null:7',
    'a:NaN:b',
    'user:[object Object]',
    '{order:undefined}',
    'a:{null}:b',
  ])('as a name: %s is refused, because a value was missing when it was made', async (name) => {
    const { locks, backend } = await world.process();
    for (const call of [
      () => locks.acquire(name),
      () => locks.tryAcquire(['a', name]),
      () => locks.withLock(name, async () => {}),
      () => locks.getLock(name).lock(),
      async () => locks.getSemaphore(name).trySetPermits(1),
    ]) {
      const error = await errorOf((async () => call())());
      expect(error).toBeInstanceOf(LockKeyError);
      expect(error.message).toContain(`'${name}'`);
      expect(error.message).toContain('Check the value before you call');
    }
    expect(backend.count()).toBe(0);
    // An operator can nevertheless inspect such a lock, and release it, because another version may have made it.
    expect(await locks.isLocked(name)).toBe(false);
    expect(await locks.forceRelease(name)).toBe(false);
  });

  it('as a name: one that only contains such a word is accepted', async () => {
    const { locks } = await world.process();
    for (const name of ['nullable:1', 'user:undefined-7', 'annull', 'a:Null', 'user-null', 'order:%5Bobject Object%5D'])
      await locks.withLock(name, async () => {});
  });

  it.each<[string, LockOptions | unknown, string]>([
    ['an unknown option', { waitime: 5 }, "there is no option 'waitime'"],
    ['a negative waitTime', { waitTime: -1 }, 'waitTime is -1: it must be at least 0'],
    ['a waitTime of NaN', { waitTime: Number.NaN }, 'waitTime is NaN'],
    ['a waitTime of null', { waitTime: null }, 'waitTime is null'],
    ['a waitTime that is no duration', { waitTime: 'soon' }, "waitTime is 'soon'"],
    ['an empty waitTime', { waitTime: '' }, "waitTime is ''"],
    ['a negative leaseTime', { leaseTime: -1 }, 'leaseTime is -1'],
    ['a leaseTime of NaN', { leaseTime: Number.NaN }, 'leaseTime is NaN'],
    ['a leaseTime for ever', { leaseTime: Number.POSITIVE_INFINITY }, 'leaseTime is Infinity: it must be finite'],
    ['a leaseTime of 0', { leaseTime: 0 }, 'leaseTime is 0: it must be at least 100 ms'],
    ['a leaseTime under 100 ms', { leaseTime: 99 }, 'leaseTime is 99: it must be at least 100 ms'],
    ['a leaseTime under 100 ms in words', { leaseTime: '50ms' }, "leaseTime is '50ms'"],
    ['a leaseTime that is an object', { leaseTime: {} }, 'leaseTime is [object Object]'],
    ['an unknown type', { type: 'mutex' }, "type is 'mutex'; it must be 'reentrant', 'fair'"],
    ['a signal that is none', { signal: {} }, 'signal is an object; it must be an AbortSignal'],
  ])('as options: %s is refused, naming the call and the lock, and nothing is locked', async (_, options, why) => {
    const { locks, backend } = await world.process();
    for (const names of ['order:1', ['order:1', 'order:2']]) {
      for (const [method, call] of [
        ['acquire()', () => locks.acquire(names, options as LockOptions)],
        ['withLock()', () => locks.withLock(names, options as LockOptions, async () => {})],
      ] as const) {
        const error = await errorOf(call());
        expect(error).toBeInstanceOf(LockConfigurationError);
        expect(error.message).toContain(method);
        expect(error.message).toContain('order:1');
        expect(error.message).toContain(why);
      }
    }
    expect(backend.count()).toBe(0);
  });

  it.each([
    ['null', null],
    ['a number', 5_000],
    ['a string', '5s'],
  ])('as options: %s instead of an object is refused', async (_, options) => {
    const { locks, backend } = await world.process();
    const error = await errorOf(locks.acquire('order:1', options as unknown as LockOptions));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(backend.count()).toBe(0);
  });

  it('as a body: withLock() without a function is refused', async () => {
    const { locks, backend } = await world.process();
    for (const call of [
      () => locks.withLock('order', undefined as never),
      () => locks.withLock('order', {}, undefined as never),
      () => locks.withLock('order', {}, 'body' as never),
    ]) {
      expect(await errorOf(call())).toBeInstanceOf(LockConfigurationError);
    }
    expect(backend.count()).toBe(0);
  });

  it('as a name that is asked about is refused', async () => {
    const { locks, backend } = await world.process();
    for (const ask of [locks.isLocked(''), locks.inspect(undefined as never), locks.forceRelease('{')]) {
      expect(await errorOf(ask)).toBeInstanceOf(LockKeyError);
    }
    expect(backend.count()).toBe(0);
  });

  it('as the name or a duration of a handle is refused', async () => {
    const { locks, backend } = await world.process();
    expect(await errorOf((async () => locks.getLock('').lock())())).toBeInstanceOf(LockKeyError);
    expect(await errorOf((async () => locks.getLock('order').lock(50))())).toBeInstanceOf(LockConfigurationError);
    expect(await errorOf((async () => locks.getLock('order').tryLock(-5))())).toBeInstanceOf(LockConfigurationError);
    expect(backend.count()).toBe(0);
  });

  it('is not confused with good input: names with paired braces, in any script, and durations in words', async () => {
    const { locks } = await world.process();
    for (const name of ['a', 'order:{42}:item', 'Bestellung für Ölmühle', '注文:1', 'a b', '%7B', 'x'.repeat(900)]) {
      await locks.withLock(name, { leaseTime: '10s', waitTime: '1m' }, async (lease) => expect(lease.name).toBe(name));
    }
    await locks.withLock('order', { waitTime: Number.POSITIVE_INFINITY as never, leaseTime: 10_000.5 }, async () => {});
  });

  it('is not confused with good input: a name that looks like the type and name of another lock stands for itself', async () => {
    const { locks } = await world.process({ keyPrefix: '' });
    for (const type of ['read', 'write', 'fair', 'fenced'] as const) {
      const held = await locks.acquire('order', { type });
      const likely = await locks.tryAcquire(`${type === 'read' ? 'write' : type}\0order`);
      expect(likely?.held).toBe(true);
      await likely?.release();
      await held.release();
    }
  });

  it('includes names that are too long only with their prefix', async () => {
    const { locks, backend } = await world.process({ keyPrefix: 'p'.repeat(500) });
    const error = await errorOf(locks.acquire('x'.repeat(600)));
    expect(error).toBeInstanceOf(LockKeyError);
    expect(error.message).toContain('1100 bytes');
    expect(await errorOf(locks.acquire(['x'.repeat(600), 'y']))).toBeInstanceOf(LockKeyError);
    expect(backend.count()).toBe(0);
  });
});

describe('createLockService()', () => {
  it.each<[string, unknown, string]>([
    ['no options', undefined, 'the options are missing'],
    ['null', null, 'the options are missing'],
    ['neither connection nor backend', {}, 'give one of connection, backend and quorum (none is given)'],
    [
      'a connection that is undefined',
      { connection: undefined },
      "RedisLockModule: connection is undefined. If the value comes from an environment variable or a setting, is that set? Give one of connection, backend and quorum, such as { connection: 'redis://localhost:6379' }, or { backend: 'memory' } for tests",
    ],
    [
      'a backend that is undefined',
      { backend: undefined },
      'RedisLockModule: backend is undefined. If the value comes',
    ],
    [
      'a connection and a quorum that are undefined',
      { connection: undefined, quorum: undefined },
      'connection is undefined and quorum is undefined. If the value comes',
    ],
    [
      'connection and backend',
      { connection: 'redis://localhost', backend: 'memory' },
      'connection and backend are given',
    ],
    ['an unknown option', { backend: 'memory', leaseTime: 5 }, "there is no option 'leaseTime'"],
    ['an unknown backend', { backend: 'mongo' }, "backend is 'mongo'; it must be 'memory' or a LockBackend"],
    ['a prefix that is no string', { backend: 'memory', keyPrefix: 5 }, 'keyPrefix must be a string'],
    [
      'a prefix with half a brace',
      { backend: 'memory', keyPrefix: '{app' },
      'keyPrefix must be a string whose braces are balanced',
    ],
    [
      'a prefix of our own keys',
      { backend: 'memory', keyPrefix: 'nestjs_redis_lock_orders:' },
      "keyPrefix begins with 'nestjs_redis_lock_', as the keys that this library keeps beside locks do, so that list() would miss all locks. Choose another one",
    ],
    ['a prefix with half a character', { backend: 'memory', keyPrefix: 'app\ud83d' }, 'keyPrefix has half a character'],
    ['a watchdogTimeout under 100 ms', { backend: 'memory', watchdogTimeout: 50 }, 'watchdogTimeout is 50'],
    ['a negative waitTime', { backend: 'memory', waitTime: -1 }, 'waitTime is -1'],
    ['a shutdownTimeout that is none', { backend: 'memory', shutdownTimeout: 'later' }, "shutdownTimeout is 'later'"],
    ['a commandTimeout of 0', { backend: 'memory', commandTimeout: 0 }, 'commandTimeout is 0'],
    ['an unknown onLost', { backend: 'memory', onLost: 'ignore' }, "onLost is 'ignore'"],
    ['an unknown release', { backend: 'memory', release: 'later' }, "release is 'later'"],
    [
      "release: 'background' with minReplicas",
      { connection: 'redis://localhost', release: 'background', minReplicas: 1 },
      "release: 'background' is not possible: with minReplicas",
    ],
    [
      "release: 'background' with a quorum",
      { quorum: ['redis://a', 'redis://b', 'redis://c'], release: 'background' },
      "release: 'background' is not possible: on a quorum",
    ],
    [
      "release: 'background' with onLost: 'throw'",
      { backend: 'memory', release: 'background', onLost: 'throw' },
      "onLost: 'throw' and release: 'background' exclude each other",
    ],
    [
      "release: 'background' with row locks",
      { backend: rowLocks({ url: 'postgres://localhost/nowhere' }), release: 'background' },
      "release: 'background' is not possible: a lock is released by a statement of its session",
    ],
    ['minReplicas below 0', { backend: 'memory', minReplicas: -1 }, 'minReplicas is -1'],
    [
      'a logger that is none',
      { backend: 'memory', logger: 'x' },
      "logger is 'x'; it must be an object with the methods warn and error",
    ],
    [
      'half a logger',
      { backend: 'memory', logger: { warn() {} } },
      'logger is an object; it must be an object with the methods warn and error',
    ],
    ['isGlobal in words', { backend: 'memory', isGlobal: 'false' }, "isGlobal is 'false'; it must be true or false"],
    [
      'a former option that has another name',
      { backend: 'memory', fairWaitTimeout: '5s' },
      "there is no option 'fairWaitTimeout': write waiterTimeout",
    ],
    [
      'a former option that another one replaces',
      { backend: 'memory', replicaTimeout: '1s' },
      "there is no option 'replicaTimeout': commandTimeout says how long the replicas have, too",
    ],
    [
      'a former option of calls',
      { backend: 'memory', reentry: false },
      "there is no option 'reentry': write it in the",
    ],
    [
      'a former option about names',
      { backend: 'memory', allowSuspiciousNames: true },
      "there is no option 'allowSuspiciousNames': check the values that names are made of",
    ],
    [
      'a prefix that leaves no room for names',
      { backend: 'memory', keyPrefix: 'p'.repeat(2_000) },
      'keyPrefix has 2000 bytes; it may have at most 512',
    ],
    [
      'a lease without its unit',
      { backend: 'memory', watchdogTimeout: '30' },
      "watchdogTimeout is '30': it must be at least 100 ms; did you mean '30s'?",
    ],
    ['an unknown shardedPubSub', { backend: 'memory', shardedPubSub: true }, 'shardedPubSub is'],
  ])('refuses %s', (_, options, why) => {
    const call = () => createLockService(options as RedisLockOptions);
    expect(call).toThrow(LockConfigurationError);
    expect(call).toThrow(why);
  });

  it('takes one option while the others are undefined', async () => {
    const unset = { connection: undefined, quorum: undefined };
    const locks = createLockService({ ...unset, backend: 'memory', logger: { warn() {}, error() {} } });
    expect(await locks.isLocked('order')).toBe(false);
    await locks.close();
  });

  it('opens no connection when any option is wrong', () => {
    let opened = 0;
    const connection = () => {
      opened++;
      throw new Error('opened');
    };
    expect(() => createLockService({ connection, watchdogTimeout: 50 })).toThrow('watchdogTimeout is 50');
    expect(opened).toBe(0);
  });
});
