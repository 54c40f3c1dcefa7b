import { expectBetween, LATER, ScriptWorld } from './script-world.js';

const MINUTE = 60_000;

describe('write-client-1 and read-client-1', () => {
  const world = new ScriptWorld();
  const read = (longest: number, ...fields: string[]) => world.run('read-client-1', ['record'], [longest, ...fields]);

  it('store and read the fields of a record, with the time of the server', async () => {
    const before = await world.now();
    await world.run('write-client-1', ['record'], [MINUTE, 'one', '1', 'two', '22']);
    await world.expectLease('record', MINUTE);
    const [time, at, ...others] = (await read(100, 'at', 'one', 'three', 'two')) as [number, string];
    expect(others).toEqual(['1', null, '22']);
    expect(Number(at)).toBeGreaterThanOrEqual(before);
    expectBetween(time, Number(at), await world.now());
  });

  it('remove a record', async () => {
    await world.run('write-client-1', ['record'], [MINUTE, 'one', '1']);
    await world.run('write-client-1', ['record'], [0, 'one', '1']);
    expect(await world.redis.exists('record')).toBe(0);
  });

  it('read only the time when a value is too large, or the key is of another type', async () => {
    await world.redis.hset('record', 'one', '12345');
    expect(await read(5, 'one')).toEqual([expect.any(Number), '12345']);
    expect(await read(4, 'one')).toEqual([expect.any(Number)]);
    await world.redis.set('record', 'of somebody else', 'PX', MINUTE);
    expect(await world.redis.del('record')).toBe(1);
    await world.redis.set('record', 'of somebody else');
    expect(await read(100, 'one', 'two')).toEqual([expect.any(Number)]);
  });
});

describe('note-block-1', () => {
  const world = new ScriptWorld();

  it('says in a record since when its client is blocked, and keeps it', async () => {
    await world.redis.hset('record', 'one', '1');
    await world.redis.pexpire('record', 1_000);
    const before = await world.now();
    await world.run('note-block-1', ['record'], [5_000, MINUTE]);
    await world.expectLease('record', MINUTE);
    const { blockedAt, blockedSince } = await world.redis.hgetall('record');
    expectBetween(Number(blockedAt), before, await world.now());
    expect(Number(blockedAt) - Number(blockedSince)).toBe(5_000);
  });

  it('makes no record', async () => {
    await world.run('note-block-1', ['record'], [5_000, MINUTE]);
    expect(await world.redis.exists('record')).toBe(0);
  });
});

describe('index-client-1 and list-clients-1', () => {
  const world = new ScriptWorld();
  const index = (client: string, lifetime: number) => world.run('index-client-1', ['clients'], [client, lifetime]);
  const list = () => world.run('list-clients-1', ['clients']);

  it('list the clients whose time has not passed', async () => {
    expect(await list()).toEqual([]);
    await index('one', MINUTE);
    await index('two', 2 * MINUTE);
    await world.expectLease('clients', 2 * MINUTE);
    await world.redis.zadd('clients', (await world.now()) - 1, 'three');
    expect(await list()).toEqual(['one', 'two']);
    expect(await world.redis.zcard('clients')).toBe(3);
    await index('two', 2 * MINUTE);
    expect(await world.redis.zcard('clients')).toBe(2);
  });

  it('remove a client, and leave the others their time', async () => {
    await index('one', MINUTE);
    await index('two', MINUTE);
    await index('one', 0);
    expect(await list()).toEqual(['two']);
    await world.expectLease('clients', MINUTE);
  });
});

describe('write-waits-1 and read-waits-1', () => {
  const world = new ScriptWorld();
  const write = (ended: readonly string[], going: Record<string, string>, until: string | number = LATER) =>
    world.run('write-waits-1', ['waits'], [until, MINUTE, ended.length, ...ended, ...Object.entries(going).flat()]);
  const read = async () => {
    const all = (await world.run('read-waits-1', ['waits'])) as string[];
    return Object.fromEntries(all.flatMap((id, i) => (i % 2 === 0 ? [[id, all[i + 1]]] : [])));
  };

  it('keep the waits that continue, and remove those that have ended', async () => {
    expect(await write([], { one: 'first', two: 'second', three: 'third', four: 'fourth' })).toBe(1);
    expect(await read()).toEqual({ one: 'first', two: 'second', three: 'third', four: 'fourth' });
    await world.expectLease('waits', MINUTE);
    await world.redis.pexpire('waits', 1_000);
    expect(await write(['one', 'two'], { three: 'changed' })).toBe(1);
    expect(await read()).toEqual({ three: 'changed', four: 'fourth' });
    await world.expectLease('waits', MINUTE);
  });

  it('leave the rest its time when waits have only ended', async () => {
    await write([], { one: 'first', two: 'second' });
    await world.redis.pexpire('waits', 30_000);
    await write(['one'], {});
    expect(await read()).toEqual({ two: 'second' });
    await world.expectLease('waits', 30_000);
    await write(['two'], {});
    expect(await world.redis.exists('waits')).toBe(0);
  });

  it('do nothing after the deadline', async () => {
    await write([], { one: 'first' });
    const now = await world.now();
    expect(await write(['one'], { two: 'second' }, now - 1)).toEqual(['expired', expect.any(Number)]);
    expect(await read()).toEqual({ one: 'first' });
  });
});

describe('knows-command-1 and time-1', () => {
  const world = new ScriptWorld();

  it('say whether the server knows a command', async () => {
    expect(await world.run('knows-command-1', ['key'], ['publish'])).toBe(1);
    expect(await world.run('knows-command-1', ['key'], ['no-such-command'])).toBe(0);
  });

  it('read the time', async () => {
    const before = await world.now();
    const [seconds, micros] = (await world.run('time-1', ['key'])) as string[];
    const time = Number(seconds) * 1_000 + Number(micros) / 1_000;
    expect(time).toBeGreaterThanOrEqual(before);
    expect(time).toBeLessThan((await world.now()) + 1);
  });
});
