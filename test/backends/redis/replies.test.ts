import { keysOf } from '../../../lib/backends/redis/calls/item-answer.js';
import { LOCK_SCRIPTS, type LockScript } from '../../../lib/backends/redis/commands/lock-scripts.js';
import { scripts } from '../../../lib/backends/redis/scripts.js';
import { until } from '../../support/until.js';
import { failure, RedisWorld } from './redis-world.js';

const CLOCK = 'nestjs_redis_lock_clock';

describe('a borrowed client that is in a transaction', () => {
  const world = new RedisWorld();

  it('acquires nothing, and the error says why', async () => {
    const client = world.server.client();
    const backend = world.backend({ connection: client });
    const lock = world.request();
    const other = world.request();
    await backend.acquire(other); // before the transaction, calls succeed
    await client.multi({ pipeline: false });
    for (const call of [
      backend.acquire(lock),
      backend.acquireAll([lock]),
      backend.renew(other),
      backend.release(other),
      backend.transfer({
        key: other.key,
        type: 'reentrant',
        from: other.owner,
        to: lock.owner,
        leaseTime: 1_000,
        reserve: 0,
      }),
      backend.inspect(other.key),
      backend.synchronizers.availablePermits('permits'),
      backend.synchronizers.takePermits('permits', [1], { session: 'a:b', sequence: 1 }),
    ]) {
      const error = await failure(call);
      expect(error).toMatchObject({ kind: 'denied', outcome: 'unknown' });
      expect(error.message).toMatch(/in a transaction \(MULTI\).*its own client/);
    }
    await client.discard();
    expect(await world.redis.exists(lock.key)).toBe(0);
  });

  it('is detected before a script is sent when it was in one from the start', async () => {
    const client = world.server.client();
    await client.multi({ pipeline: false });
    const backend = world.backend({ connection: client });
    const error = await failure(backend.acquire(world.request()));
    expect(error.message).toMatch(/in a transaction/);
    await client.discard();
  });

  it('does not affect the tokens of others', async () => {
    const client = world.server.client();
    const backend = world.backend({ connection: client });
    await backend.acquire(world.request());
    await client.multi({ pipeline: false });
    await failure(backend.acquire(world.request()));
    await client.discard();
    const reply = await backend.acquire(world.request());
    expect(reply).toMatchObject({ acquired: true, token: expect.any(Number) });
    expect(Number(await world.redis.get(CLOCK))).toBeGreaterThan(1_700_000_000_000_000);
    if (reply.acquired) expect(reply.token).toBeGreaterThan(1_700_000_000_000_000);
  });
});

describe('the scripts', () => {
  const world = new RedisWorld();
  const later = () => String(Date.now() + 60_000);
  const acquire = (limit: string, seen: string, lease: string, key = world.key()) =>
    world.redis.eval(scripts['acquire-reentrant'].source, 2, CLOCK, key, limit, seen, lease, '0', 'client:1');

  it.each(['NaN', '-1', '-9.2e18', '1e19', 'inf', 'abc', ''])(
    'refuse %j for the highest token that was seen, and change neither clock nor lock',
    async (seen) => {
      await acquire(later(), '0', '60000');
      const before = await world.redis.get(CLOCK);
      const key = world.key();
      await expect(acquire(later(), seen, '60000', key)).rejects.toThrow(/highest fencing token/);
      expect(await world.redis.exists(key)).toBe(0);
      expect(await world.redis.get(CLOCK)).toBe(before);
    },
  );

  it.each(['0', '-1', '1.5', '1e19', '1e300', 'NaN', 'abc', ''])(
    'refuse a lease of %j ms, and write no key that would stay for ever',
    async (lease) => {
      const key = world.key();
      await expect(acquire(later(), '0', lease, key)).rejects.toThrow(/lease time/);
      expect(await world.redis.exists(key)).toBe(0);
    },
  );

  it.each(['fenced', 'fair', 'read', 'write'] as const)(
    'give one answer for each %s lock of a batch, and list the types of its keys if one fails',
    async (type) => {
      const { acquire, renew, release } = LOCK_SCRIPTS[type];
      const locks = [world.request(type), world.request(type)];
      await world.redis.set(locks[0].key, 'a value of yours');
      const run = ({ name, keys }: LockScript, before: readonly string[], args: readonly string[]) => {
        const all = [...before, ...keysOf(keys, locks)];
        const owners = locks.map(({ owner }) => owner);
        return world.redis.eval(scripts[name].source, all.length, ...all, ...args, ...owners);
      };
      const failed = ({ keys }: LockScript) => [
        [expect.stringContaining('WRONGTYPE'), 'string', ...keys.slice(1).map(() => 'none')],
      ];
      const option = acquire.option === undefined ? [] : ['0'];
      expect(await run(acquire, [CLOCK], [later(), '0', '60000', '0', ...option])).toEqual([
        0,
        failed(acquire),
        expect.anything(),
      ]);
      expect(await run(renew, [], ['PUBLISH', '60000'])).toEqual([expect.any(Number), failed(renew), 1]);
      expect(await run(release, [], ['PUBLISH'])).toEqual([failed(release), expect.anything()]);
    },
  );

  it.each([
    ['reentrant', 'pexpire'],
    ['fair', 'pexpire'],
    ['write', 'pexpire'],
    ['read', 'pexpire'],
    ['read', 'set'],
  ] as const)('leave no %s lock without a lease where the user may not call %s', async (type, command) => {
    await world.redis.call('ACL', 'SETUSER', 'limited', 'on', '>secret', '~*', '&*', '+@all', `-${command}`);
    const backend = world.backend({ connection: `redis://limited:secret@127.0.0.1:${world.server.port}` });
    const lock = world.request(type);
    await failure(backend.acquire(lock));
    expect(await world.redis.exists(lock.key)).toBe(0);
    expect(await world.redis.ttl(lock.key)).toBe(-2);
    await world.redis.call('ACL', 'DELUSER', 'limited');
  });
});

describe('a database that does not exist', () => {
  const world = new RedisWorld();

  it('makes each command fail, and nothing is written to database 0 instead', async () => {
    const backend = world.backend({ connection: `${world.server.url}/99` });
    const lock = world.request();
    for (const call of [
      () => backend.acquire(lock),
      () => backend.acquireAll([lock]),
      () => backend.release(lock),
      () => backend.renew(lock),
      () => backend.inspect(lock.key),
      () => backend.forceRelease(lock.key),
      () => backend.synchronizers.trySetPermits(lock.key, 1, { session: 'a:b', sequence: 1 }),
    ]) {
      const error = await failure(call());
      expect(error).toMatchObject({ kind: 'denied', outcome: 'refused' });
      expect(error.message).toMatch(/database 99 cannot be used.*out of range.*'databases' in redis\.conf/);
    }
    expect(await world.keys()).toEqual([]);
  });

  it('is used when it does exist', async () => {
    const backend = world.backend({ connection: `${world.server.url}/9` });
    const lock = world.request();
    expect(await backend.acquire(lock)).toMatchObject({ acquired: true });
    expect(await world.redis.exists(lock.key)).toBe(0);
    await world.redis.select(9);
    expect(await world.redis.exists(lock.key)).toBe(1);
    await world.redis.flushdb();
    await world.redis.select(0);
  });
});

describe('a server that evicts keys', () => {
  const world = new RedisWorld();
  const warnings = async (memory: string, policy: string) => {
    await world.redis.config('SET', 'maxmemory', memory);
    await world.redis.config('SET', 'maxmemory-policy', policy);
    const messages: string[] = [];
    const backend = world.backend({ onWarning: (message) => messages.push(message) });
    await backend.acquire(world.request());
    await backend.acquire(world.request());
    await backend.inspect('lock:any'); // everything that was requested before has been answered
    return messages;
  };

  afterEach(async () => {
    await world.redis.config('SET', 'maxmemory', '0');
  });

  it('causes one warning, with the remedy', async () => {
    const messages = await warnings('100mb', 'allkeys-lru');
    await until(() => messages.length > 0);
    expect(messages).toEqual([expect.stringMatching(/maxmemory-policy is 'allkeys-lru'.*Set it to 'noeviction'/)]);
  });

  it.each([
    ['0', 'allkeys-lru'],
    ['100mb', 'noeviction'],
  ])('is not a server with maxmemory %s and policy %s', async (memory, policy) => {
    expect(await warnings(memory, policy)).toEqual([]);
  });
});
