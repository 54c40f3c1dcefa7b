import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError, LockLostError } from '../../../lib/engine/errors.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { ms, nothingIsLeft, openVirtualWorld, openWorld, STORES } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { NEVER } from '../../support/time-limits.js';
import { until } from '../../support/until.js';
import { answerAfter, answerLost, type Disturbance } from '../../support/watched/watched-backend.js';

const BACKGROUND = { release: 'background' } as const;

/** Delays the release. */
const late: Disturbance = async (execute) => {
  await sleep(50);
  return execute();
};

describe.each(STORES)("release: 'background' on %s", (store) => {
  const world = openWorld(store);

  it('settles when the body has ended, whatever time the answer to the release takes', async () => {
    const process = await world.process(BACKGROUND);
    const { locks, backend } = process;
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'release');
    const released: unknown[] = [];
    locks.on('released', (event) => released.push(event));
    expect(await locks.withLock('order', async () => 'done')).toBe('done');
    expect(backend.count('release')).toBe(1);
    expect(released).toMatchObject([{ name: 'order', confirmed: false }]);
    answer.open();
    await nothingIsLeft(process);
  });

  it('says of a confirmed release that it is', async () => {
    const { locks, backend } = await world.process();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'release');
    const released: unknown[] = [];
    locks.on('released', (event) => released.push(event));
    const call = locks.withLock('order', () => {});
    await until(() => backend.count('release') === 1);
    await sleep(10);
    expect(released).toEqual([]);
    answer.open();
    await call;
    expect(released).toMatchObject([{ name: 'order', confirmed: true }]);
  });

  it('frees the lock', async () => {
    const [one, other] = await world.services(2, BACKGROUND);
    for (let round = 0; round < 20; round++) {
      await one.withLock('order', () => {});
      await other.withLock('order', { waitTime: '5s' }, () => {});
    }
  });

  it('reports what the body throws', async () => {
    const { locks } = await world.process(BACKGROUND);
    const thrown = new Error('no stock');
    expect(await errorOf(locks.withLock('order', () => Promise.reject(thrown)))).toBe(thrown);
    await until(async () => !(await locks.isLocked('order')));
  });

  it.each<[string, LockOptions]>([
    ['the same type', {}],
    ['type fenced', { type: 'fenced' }],
    ['type fair', { type: 'fair' }],
    ['a writer', { type: 'write' }],
    ['a reader', { type: 'read' }],
  ])('lets %s try once right behind it, also when the release arrives later', async (_, options) => {
    const { locks, backend } = await world.process(BACKGROUND);
    await locks.withLock('order', () => {});
    const first = await locks.tryAcquire('order', options);
    expect(first).not.toBeNull();
    await first?.release();
    backend.disturb(late, 'release');
    await locks.withLock('order', () => {});
    const second = await locks.tryAcquire('order', options);
    expect(second).not.toBeNull();
    backend.heal();
    await second?.release();
  });

  it.each<LockOptions['type']>(['reentrant', 'fenced'])(
    'lets several names of type %s be tried behind it',
    async (type) => {
      const { locks, backend } = await world.process(BACKGROUND);
      backend.disturb(late, 'release');
      await locks.withLock('order', () => {});
      const lease = await locks.tryAcquire(['order', 'parcel'], { type });
      expect(lease).not.toBeNull();
      backend.heal();
      await lease?.release();
    },
  );

  it('is busy when another owner holds the lock behind it', async () => {
    const [one, other] = await world.processes(2, BACKGROUND);
    one.backend.disturb(late, 'release');
    const held = latch();
    await one.locks.withLock('order', () => {});
    const taken = other.locks.withLock('order', () => held.promise);
    await until(async () => (await other.locks.inspect('order')).owners.some(({ mine }) => mine));
    expect(await one.locks.tryAcquire('order', { type: 'fenced' })).toBeNull();
    held.open();
    await taken;
  });

  it('lets questions and forced releases come behind it', async () => {
    const { locks, backend } = await world.process(BACKGROUND);
    backend.disturb(late, 'release');
    await locks.withLock('order', () => {});
    expect(await locks.isLocked('order')).toBe(false);
    await locks.withLock('order', () => {});
    expect(await locks.inspect('order')).toMatchObject({ locked: false });
    await locks.withLock('order', () => {});
    expect(await locks.forceRelease('order')).toBe(false);
  });

  it('is waited for by drain() and close()', async () => {
    const [one, other] = await world.processes(2, { ...BACKGROUND, shutdownTimeout: ms(NEVER) });
    let answered = 0;
    one.backend.disturb(async (execute, request) => {
      const reply = await late(execute, request);
      answered++;
      return reply;
    }, 'release');
    await one.locks.withLock('order', () => {});
    await one.locks.drain();
    expect(answered).toBe(1);
    expect(await other.locks.isLocked('order')).toBe(false);
    await one.locks.close();
  });

  it('keeps the lock for holdAtLeast without being waited for', async () => {
    const process = await world.process(BACKGROUND);
    const { locks, backend } = process;
    const { engine } = locks;
    const lease = await engine.acquireToRun('order', {}, 'test');
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'renew');
    await engine.holdWhile(lease, () => {}, 300);
    expect(backend.count('renew')).toBe(1);
    answer.open();
    expect(await locks.isLocked('order')).toBe(true);
    await until(async () => !(await locks.isLocked('order')));
  });

  it('leaves acquire() and lease.release() as they are', async () => {
    const { locks, backend } = await world.process(BACKGROUND);
    const answer = latch();
    const lease = await locks.acquire('order');
    backend.disturb(answerAfter(answer.promise), 'release');
    let settled = false;
    const release = lease.release().then(() => {
      settled = true;
    });
    await sleep(20);
    expect(settled).toBe(false);
    answer.open();
    await release;
    expect(await errorOf(locks.acquire('order', BACKGROUND as object))).toBeInstanceOf(LockConfigurationError);
    expect(await errorOf(locks.tryAcquire('order', BACKGROUND as object))).toBeInstanceOf(LockConfigurationError);
    const body = () => lease.release();
    expect(await errorOf(locks.withLock('order', { ...BACKGROUND, onLost: 'throw' }, body))).toMatchObject({
      name: 'LockConfigurationError',
      message: expect.stringContaining("onLost: 'throw'"),
    });
    expect(await locks.withLock('order', { release: 'confirmed', onLost: 'throw' }, () => 1)).toBe(1);
  });

  it('repeats a release without an answer, and logs it', async () => {
    const [one, other] = await world.processes(2, BACKGROUND);
    const { locks, backend, logger } = one;
    backend.disturb(async () => Promise.reject(Object.assign(new Error('away'), { kind: 'unavailable' })), 'release');
    expect(await locks.withLock('order', () => 1)).toBe(1);
    await until(() => logger.warnings.length > 0);
    expect(logger.warnings[0]).toContain('could not be released in time');
    backend.heal();
    expect(await other.locks.withLock('order', { waitTime: '10s' }, () => 2)).toBe(2);
  });

  it('believes an answer that was lost after the release', async () => {
    const { locks, backend, logger } = await world.process(BACKGROUND);
    backend.disturb(answerLost, 'release');
    await locks.withLock('order', () => {});
    await until(() => logger.warnings.length > 0);
    backend.heal();
    expect(await locks.withLock('order', { waitTime: '5s' }, () => 1)).toBe(1);
  });
});

describe("release: 'background'", () => {
  const world = openVirtualWorld();

  it('throws LockLostError when the clock shows that the lease is over', async () => {
    const { locks, runtime } = await world.process(BACKGROUND);
    const call = errorOf(locks.withLock('order', { leaseTime: '1s' }, () => runtime.advance(1_100)));
    expect(await call).toBeInstanceOf(LockLostError);
  });

  it('throws LockLostError once when one of several locks was lost, and the release of another is unanswered', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    try {
      const { locks, runtime } = await world.process(BACKGROUND);
      const call = errorOf(locks.withLock(['order', 'parcel'], () => locks.forceRelease('order')));
      expect(await runtime.until(call)).toBeInstanceOf(LockLostError);
      await runtime.until(locks.drain());
      expect(await locks.isLocked('parcel')).toBe(false);
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', note);
    }
  });

  it.each(['lost', undefined])('turns what only the answer tells into a lost event and a warning', async () => {
    const { locks, backend, logger } = await world.process(BACKGROUND);
    const lost: unknown[] = [];
    locks.on('lost', (event) => lost.push(event));
    backend.disturb(async () => ({ released: false, listeners: 0, published: false, resent: false }), 'release');
    const { signal, value } = await locks.withLock('order', ({ signal }) => ({ signal, value: 7 }));
    expect(value).toBe(7);
    await until(() => lost.length > 0);
    expect(lost).toMatchObject([{ name: 'order', error: expect.any(LockLostError) }]);
    expect(logger.warnings[0]).toContain("'order' was lost");
    expect(signal.reason).toBeInstanceOf(LockLostError);
  });

  it('asks only once more where the busy answer stays', async () => {
    const { locks, backend } = await world.process(BACKGROUND);
    const answer = latch();
    let owner: string | undefined;
    backend.disturb(answerAfter(answer.promise), 'release');
    await locks.withLock('order', (lease) => {
      owner = lease.owner;
    });
    backend.disturb(async () => ({ acquired: false, remaining: 1_000, holder: owner }), 'acquire');
    const asked = backend.count('acquire');
    const trying = locks.tryAcquire('order', { type: 'fenced' });
    await until(() => backend.count('acquire') > asked);
    answer.open();
    expect(await trying).toBeNull();
    expect(backend.count('acquire')).toBe(asked + 2);
  });
});

describe('a caller that asks before a release was sent', () => {
  const world = openWorld('Redis');
  const scripts = async (work: () => Promise<unknown>): Promise<number> => {
    const client = world.redis.client();
    await client.config('RESETSTAT');
    await work();
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
  };
  const warm = async (settings = {}) => {
    const process = await world.process(settings);
    await process.locks.withLock('first', () => {});
    await process.locks.withLock('first', () => {});
    return process;
  };

  it('gets the lock without another command, again and again', async () => {
    const { locks } = await warm(BACKGROUND);
    const tokens: number[] = [];
    await sleep(300); // the clock of the tokens starts ahead of the wall clock
    const commands = await scripts(async () => {
      for (let i = 0; i < 200; i++) await locks.withLock('order', ({ fencingToken }) => void tokens.push(fencingToken));
      await locks.isLocked('order');
    });
    expect(commands).toBeLessThan(100);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(200);
  });

  it('gets it by one command the first time, from another caller whose release is confirmed', async () => {
    const process = await warm();
    const { locks } = process;
    const handoffs: unknown[] = [];
    locks.on('handoff', (event) => handoffs.push(event));
    let round = 0;
    // A busy machine may need longer than the 20 ms for which a process may keep the lock.
    await until(async () => {
      const name = `order:${round++}`; // each with its first time
      const commands = await scripts(async () => {
        const first = await locks.acquire(name);
        const released = first.release();
        const second = await locks.acquire(name);
        await released;
        expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
        await second.release();
      });
      if (handoffs.length === 0) return false;
      expect(commands).toBe(3); // acquire, transfer, release
      return true;
    });
    expect(handoffs.length).toBe(1);
    await nothingIsLeft(process);
  });

  it('reserves no tokens for a lock that is used once, and some for one that is used again and again', async () => {
    const { locks, backend } = await warm(BACKGROUND);
    const reserves: number[] = [];
    const note: Disturbance = (execute, request) => {
      reserves.push((request as { reserve: number }).reserve);
      return execute();
    };
    backend.disturb(note, 'acquire', 'transfer');
    for (let i = 0; i < 5; i++) await locks.withLock(`order:${i}`, () => {});
    expect(reserves).toEqual([0, 0, 0, 0, 0]);
    reserves.length = 0;
    // A pause of this process between two calls restarts the count.
    for (let i = 0; i < 100 && !reserves.includes(64); i++) await locks.withLock('order', () => {});
    expect(reserves.slice(0, 2)).toEqual([0, 0]);
    expect(reserves.at(-1)).toBe(64);
  });

  it('reports to the releaser when the lock was gone', async () => {
    const { locks } = await warm();
    const [other] = await world.services(1);
    const first = await locks.acquire('order');
    await other.forceRelease('order');
    const released = errorOf(first.release());
    const second = await locks.acquire('order');
    expect(await released).toBeInstanceOf(LockLostError);
    await second.release();
  });

  it('waits for the release when it tries once, or wants another lease', async () => {
    const { locks } = await warm(BACKGROUND);
    for (let i = 0; i < 20; i++) {
      await locks.withLock('order', () => {});
      const lease = await locks.tryAcquire('order');
      expect(lease).not.toBeNull();
      await lease?.release();
      await locks.withLock('order', { leaseTime: '5s' }, () => {});
    }
  });

  it('leaves nothing behind', async () => {
    const process = await warm(BACKGROUND);
    const { locks } = process;
    const loops = Array.from({ length: 5 }, async (_, caller) => {
      for (let i = 0; i < 100; i++) {
        await locks.withLock(`order:${(caller + i) % 3}`, i % 7 === 0 ? { waitTime: '5s' } : {}, () => {});
        if (i % 10 === 0) await sleep(1);
      }
    });
    await Promise.all(loops);
    await nothingIsLeft(process);
    expect(await world.redis.client().keys(`${world.keyPrefix}*`)).toEqual([]);
  });

  it('lets another process have its turn', async () => {
    const [one, other] = await world.services(2, BACKGROUND);
    let over = false;
    let rounds = 0;
    const loop = (async () => {
      for (; !over; rounds++) await one.withLock('order', () => {});
    })();
    await until(() => rounds > 1_000);
    for (let i = 0; i < 5; i++) await other.withLock('order', { waitTime: '10s' }, () => {});
    over = true;
    await loop;
  });
});
