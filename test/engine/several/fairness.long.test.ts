import { LockAbortedError, LockBusyError } from '../../../lib/engine/errors.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { leftovers, NOTHING, openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';

/** The virtual time in milliseconds within which a caller has to be served this many times. */
const LONG_ENOUGH = 20_000;
const OFTEN = 20;

interface Visitor {
  readonly process: VirtualProcess;
  readonly names: string | readonly string[];
  readonly options?: LockOptions;
  readonly body?: number;
}

describe('a caller of several names, among callers of one name each', () => {
  const world = openVirtualWorld();

  const pause = (time: number) => new Promise<void>((resolve) => void world.runtime.timer(time, resolve));

  /** Callers that try again at once, until the observed callers were served often enough. */
  const contend = async (crowd: readonly Visitor[], watched: readonly Visitor[]) => {
    const inside = new Map<string, number>();
    let most = 0;
    let least = 1;
    let over = false;
    let turns = 0;
    const visit = async ({ process, names, options = {}, body = 3 }: Visitor) => {
      await process.locks.withLock(names, options, async (lease) => {
        if (options.leaseTime !== undefined)
          least = Math.min(least, lease.remainingTime() / (options.leaseTime as number));
        for (const name of lease.names) {
          inside.set(name, (inside.get(name) ?? 0) + 1);
          most = Math.max(most, inside.get(name) as number);
        }
        await pause(body);
        for (const name of lease.names) inside.set(name, (inside.get(name) as number) - 1);
      });
    };
    const others = crowd.map(async (visitor) => {
      for (; !over; turns++) await visit(visitor);
    });
    const served = watched.map(() => 0);
    const all = watched.map(async (visitor, i) => {
      while (served[i] < OFTEN) {
        await visit(visitor);
        if (!over) served[i]++;
        else return;
      }
    });
    const end = pause(LONG_ENOUGH);
    await world.runtime.until(Promise.race([Promise.all(all), end]));
    over = true;
    await world.runtime.until(Promise.all([...others, ...all, end]));
    return { most, turns, served, least };
  };

  const times = <T>(count: number, visitor: T): T[] => Array.from({ length: count }, () => visitor);

  it.each([4, 8])('is served again and again beside %i callers of each name', async (callers) => {
    const process = await world.process();
    const crowd = ['a', 'b'].flatMap((names) => times(callers, { process, names }));
    const { most, turns, served } = await contend(crowd, [{ process, names: ['a', 'b'] }]);
    expect(served).toEqual([OFTEN]);
    expect(most).toBe(1);
    expect(turns).toBeGreaterThan(OFTEN);
    await world.runtime.advance(2_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it.each([{ type: 'fair' }, { type: 'write' }, { type: 'fenced' }, { leaseTime: 1_000 }] as const)(
    'is served again and again with %j',
    async (options) => {
      const [process, other] = [await world.process(), await world.process()];
      const crowd = [process, other].flatMap((process) =>
        ['a', 'b'].flatMap((names) => times(4, { process, names, options })),
      );
      const { most, served, least } = await contend(crowd, [{ process, names: ['a', 'b'], options }]);
      expect(served).toEqual([OFTEN]);
      expect(least).toBeGreaterThan(0.8);
      expect(most).toBe(1);
    },
  );

  it('is served again and again as a writer among readers', async () => {
    const [process, other] = [await world.process(), await world.process()];
    const readers = [process, other].flatMap((process) =>
      ['a', 'b'].flatMap((names) => times(4, { process, names, options: { type: 'read' } as const })),
    );
    const { served } = await contend(readers, [{ process, names: ['a', 'b'], options: { type: 'write' } }]);
    expect(served).toEqual([OFTEN]);
  });

  it('is served again and again with a third name', async () => {
    const process = await world.process();
    const crowd = ['a', 'b', 'c'].flatMap((names) => times(4, { process, names }));
    const { most, served } = await contend(crowd, [{ process, names: ['a', 'b', 'c'] }]);
    expect(served).toEqual([OFTEN]);
    expect(most).toBe(1);
  });

  it('is served again and again beside others with crossing names', async () => {
    const [process, other] = [await world.process(), await world.process()];
    const crowd = [process, other].flatMap((process) =>
      ['a', 'b', 'c'].flatMap((names) => times(4, { process, names })),
    );
    const { most, served } = await contend(crowd, [
      { process, names: ['a', 'b'] },
      { process: other, names: ['b', 'c'] },
      { process, names: ['a', 'c'] },
    ]);
    expect(served).toEqual([OFTEN, OFTEN, OFTEN]);
    expect(most).toBe(1);
  });

  it('is served again and again inside a scope that holds one of them, beside its siblings', async () => {
    const process = await world.process();
    const crowd = times(4, { process, names: 'b' });
    const { served } = await process.locks.withLock('a', () =>
      contend([...crowd, ...times(4, { process, names: 'a' })], [{ process, names: ['a', 'b'] }]),
    );
    expect(served).toEqual([OFTEN]);
  });

  it('is served again and again beside callers that hold its last name and wait for its first one', async () => {
    const [process, other] = [await world.process(), await world.process()];
    let over = false;
    let nested = 0;
    const crowd = times(4, async () => {
      for (; !over; nested++) {
        await other.locks.withLock('z', async () => {
          await pause(4);
          await other.locks.withLock(['a', 'm'], () => pause(4));
        });
      }
    });
    const others = Promise.all(crowd.map((visit) => visit()));
    // Ends with the observation: a caller that is inside its turn at that moment could otherwise need very long.
    world.runtime.timer(LONG_ENOUGH, () => {
      over = true;
    });
    // The caller can only succeed while somebody else than those callers has the last name.
    const neighbours = [...times(4, { process, names: 'm', body: 4 }), { process, names: ['a', 'z'], body: 4 }];
    const { served } = await contend(neighbours, [{ process, names: ['m', 'z'], body: 4 }]);
    expect(Math.min(...served)).toBeGreaterThan(0);
    expect(nested).toBeGreaterThan(OFTEN);
    await world.runtime.until(others);
  });

  describe('that holds one of them while it waits for the other', () => {
    /** The caller was passed over for two seconds, and holds `a`; another process holds `b`. */
    const hold = async (options?: LockOptions, type = options?.type) => {
      const [process, other] = [await world.process(), await world.process()];
      const { runtime } = world;
      const take = (name: string) => runtime.until(other.locks.acquire(name, { type }));
      const [a, b] = [await take('a'), await take('b')];
      const waiting = process.locks.acquire(['a', 'b'], options);
      waiting.catch(() => {});
      await runtime.advance(100);
      await runtime.until(a.release());
      await runtime.advance(100);
      const again = await take('a');
      await runtime.advance(2_000);
      await runtime.until(b.release());
      await runtime.advance(100);
      const busy = await take('b');
      await runtime.until(again.release());
      await runtime.advance(100);
      expect((await process.locks.inspect('a')).owners).toEqual([expect.objectContaining({ mine: true })]);
      return { process, other, runtime, waiting, busy };
    };

    it('does so for a second at most, and then holds nothing for as long', async () => {
      const { process, other, runtime, waiting, busy } = await hold();
      await runtime.advance(1_000);
      for (let time = 0; time < 900; time += 50, await runtime.advance(50))
        expect(await other.locks.isLocked('a')).toBe(false);
      await runtime.advance(1_000);
      expect(await other.locks.isLocked('a')).toBe(true);
      await runtime.until(busy.release());
      await (await runtime.until(waiting)).release();
      await runtime.advance(2_000);
      expect(leftovers(process)).toEqual(NOTHING);
    });

    it('keeps its place in the queue of a fair lock meanwhile', async () => {
      const { process, other, runtime, waiting, busy } = await hold({ type: 'fair' });
      const served: string[] = [];
      const behind = other.locks.acquire('b', { type: 'fair' });
      void behind.then(() => served.push('behind'));
      void waiting.then(() => served.push('waiting'));
      await runtime.advance(10_000);
      expect((await other.locks.inspect('b')).waiting).toBe(2);
      while (!(await process.locks.isLocked('a'))) await runtime.advance(50);
      await runtime.until(busy.release());
      await (await runtime.until(waiting)).release();
      await (await runtime.until(behind)).release();
      expect(served).toEqual(['waiting', 'behind']);
    });

    it('announces itself as a writer meanwhile', async () => {
      const { other, runtime, waiting, busy } = await hold({ type: 'write' }, 'read');
      expect(await other.locks.tryAcquire('b', { type: 'read' })).toBeNull();
      await runtime.until(busy.release());
      await (await runtime.until(waiting)).release();
    });

    it.each(['abort', 'timeout', 'shutdown'])('leaves nothing after %s', async (how) => {
      const abort = new AbortController();
      const options = { abort: { signal: abort.signal }, timeout: { waitTime: 3_000 }, shutdown: {} }[how];
      const { process, other, runtime, waiting, busy } = await hold(options);
      const began = runtime.monotonic();
      if (how === 'abort') abort.abort();
      if (how === 'shutdown') await runtime.until(process.locks.close());
      const error = await errorOf(runtime.until(waiting));
      expect(error).toBeInstanceOf(how === 'timeout' ? LockBusyError : LockAbortedError);
      expect(runtime.monotonic() - began).toBeLessThan(how === 'timeout' ? 1_000 : 1);
      await runtime.settle();
      expect(await other.locks.isLocked('a')).toBe(false);
      await runtime.until(busy.release());
      await runtime.advance(2_000);
      expect(leftovers(process)).toEqual(NOTHING);
    });

    it.each([
      ['gave it back', 1_500],
      ['keeps its place in a line only', 2_400],
    ])('ends with the service also when it %s', async (_, time) => {
      const { process, other, runtime, waiting, busy } = await hold();
      await runtime.advance(time);
      const began = runtime.monotonic();
      await runtime.until(process.locks.close());
      expect(await errorOf(waiting)).toBeInstanceOf(LockAbortedError);
      expect(runtime.monotonic() - began).toBeLessThan(1);
      expect(await other.locks.isLocked('a')).toBe(false);
      await busy.release();
    });

    it('gets leases that have just begun', async () => {
      const { runtime, waiting, busy } = await hold({ leaseTime: 2_000 });
      await runtime.advance(700);
      await runtime.until(busy.release());
      const lease = await runtime.until(waiting);
      expect(lease.remainingTime()).toBeGreaterThan(1_900);
      await lease.release();
    });

    it('gives back a lease that could end meanwhile', async () => {
      const { other, runtime, waiting, busy } = await hold({ leaseTime: 400 });
      await runtime.advance(150);
      expect(await other.locks.isLocked('a')).toBe(false);
      await runtime.until(busy.release());
      await (await runtime.until(waiting)).release();
    });

    it('starts again when it has lost it meanwhile', async () => {
      const { other, runtime, waiting, busy } = await hold({ leaseTime: 2_000 });
      await other.locks.forceRelease('a');
      const thief = await runtime.until(other.locks.acquire('a'));
      await runtime.advance(500);
      await runtime.until(busy.release());
      await runtime.advance(2_000);
      expect((await other.locks.inspect('b')).owners).toEqual([]);
      await thief.release();
      const lease = await runtime.until(waiting);
      expect(lease.held).toBe(true);
      await lease.release();
    });
  });
});
