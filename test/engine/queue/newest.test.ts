import { setTimeout as sleep } from 'node:timers/promises';
import {
  LockAbortedError,
  LockBusyError,
  LockConfigurationError,
  LockSupersededError,
} from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import {
  leftovers,
  NOTHING,
  nothingIsLeft,
  openVirtualWorld,
  openWorld,
  type VirtualProcess,
} from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';
import { until } from '../../support/until.js';
import { refused } from '../../support/watched/watched-backend.js';

const NEWEST: LockOptions = { newest: true };

describe('a lock for which only the newest caller waits', () => {
  const world = openVirtualWorld();

  const acquire = ({ locks }: VirtualProcess, options: LockOptions = {}) => {
    const lease = locks.acquire('index', { ...NEWEST, ...options });
    lease.catch(() => {});
    return lease;
  };
  const inLine = async ({ locks, backend }: VirtualProcess) =>
    (await backend.inspect(locks.engine.keyOf('index'))).queue.length;
  const end = async (process: VirtualProcess, lease: Promise<Lease>) => {
    const held = await process.runtime.until(lease);
    await process.runtime.until(held.release());
    return held.superseded;
  };

  it('is taken with one command if it is free', async () => {
    const process = await world.process();
    const lease = await acquire(process);
    expect(process.backend.commands).toEqual(['acquire']);
    expect(lease.superseded).toBe(0);
    await lease.release();
    await process.runtime.advance(2_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it.each([1, 2])('ends the call that waits as soon as a later one comes, in %i process(es)', async (count) => {
    const processes = await Promise.all(Array.from({ length: count }, () => world.process()));
    const of = (n: number) => processes[n % count];
    const first = await acquire(of(0));
    const second = acquire(of(1));
    await of(0).runtime.advance(10);
    const third = acquire(of(2));
    await of(0).runtime.advance(10);
    const error = await errorOf(second);
    expect(error).toBeInstanceOf(LockSupersededError);
    expect(error).toBeInstanceOf(LockBusyError);
    expect((error as LockSupersededError).message).toContain("a later call waits for the lock 'index' in its place");
    const fourth = acquire(of(3));
    await of(0).runtime.advance(10);
    expect(await errorOf(third)).toBeInstanceOf(LockSupersededError);
    await first.release();
    expect(await end(of(3), fourth)).toBe(2);
    await of(0).runtime.advance(2_000);
    for (const process of processes) expect(leftovers(process)).toEqual(NOTHING);
  });

  it('serves a burst of one process with two bodies, the first and the last', async () => {
    const process = await world.process();
    const calls = Array.from({ length: 200 }, () => acquire(process));
    expect(await end(process, calls[0])).toBe(0);
    expect(await end(process, calls[199])).toBe(198);
    for (const call of calls.slice(1, 199)) expect(await errorOf(call)).toBeInstanceOf(LockSupersededError);
    expect(process.backend.count()).toBeLessThan(12);
    await process.runtime.advance(2_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('counts the calls of all processes, each once', async () => {
    const processes = await Promise.all([0, 1, 2].map(() => world.process()));
    const first = await acquire(processes[0]);
    const calls = Array.from({ length: 9 }, (_, n) => acquire(processes[n % 3]));
    await processes[0].runtime.advance(50);
    expect(await inLine(processes[0])).toBe(1);
    await first.release();
    const results = await Promise.all(
      calls.map((call) =>
        processes[0].runtime.until(
          call.then(
            (lease) => lease,
            (error: Error) => error,
          ),
        ),
      ),
    );
    const leases = results.filter((result): result is Lease => !(result instanceof Error));
    expect(leases.map(({ superseded }) => superseded)).toEqual([8]);
    await leases[0].release();
  });

  it('lets the newest call wait until the lease of a dead process ends', async () => {
    const [dead, ann, bob] = [await world.process(), await world.process(), await world.process()];
    await dead.locks.acquire('index', { ...NEWEST, leaseTime: 5_000 });
    const waiting = [acquire(ann), acquire(bob)];
    await ann.runtime.advance(6_000);
    expect(await errorOf(waiting[0])).toBeInstanceOf(LockSupersededError);
    expect(await end(bob, waiting[1])).toBe(1);
  });

  it('lets a call of another process win that was granted the lock before', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const first = await acquire(ann);
    const second = acquire(bob);
    await ann.runtime.advance(10);
    await first.release();
    const third = acquire(ann);
    const lease = await ann.runtime.until(second);
    expect(lease.held).toBe(true);
    await lease.release();
    expect(await end(ann, third)).toBe(0);
  });

  it('refuses the newest call as busy when its waitTime ends, and nobody runs in its place', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const first = await acquire(ann);
    const second = acquire(bob);
    await ann.runtime.advance(10);
    const third = acquire(ann, { waitTime: 100 });
    await ann.runtime.advance(200);
    expect(await errorOf(second)).toBeInstanceOf(LockSupersededError);
    const error = await errorOf(third);
    expect(error).toBeInstanceOf(LockBusyError);
    expect(error).not.toBeInstanceOf(LockSupersededError);
    expect(await inLine(ann)).toBe(0);
    await first.release();
    expect((await ann.locks.tryAcquire('index'))?.held).toBe(true);
  });

  it('leaves the line when its signal aborts, and when its service closes', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const first = await acquire(ann);
    const abort = new AbortController();
    const second = acquire(bob, { signal: abort.signal });
    await ann.runtime.advance(10);
    expect(await inLine(ann)).toBe(1);
    abort.abort();
    expect(await errorOf(second)).toBeInstanceOf(LockAbortedError);
    await ann.runtime.advance(10);
    expect(await inLine(ann)).toBe(0);
    const third = acquire(bob);
    await ann.runtime.advance(10);
    await ann.runtime.until(bob.locks.close(), 60_000);
    expect(await errorOf(third)).toBeInstanceOf(LockAbortedError);
    expect(await inLine(ann)).toBe(0);
    await first.release();
  });

  it('goes to the newest call when it is released by force, or lost', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const first = await acquire(ann);
    const waiting = [acquire(bob), acquire(ann)];
    await ann.runtime.advance(50);
    await ann.locks.forceRelease('index');
    await ann.runtime.advance(50);
    expect(first.held).toBe(false);
    const [lost, won] = await Promise.all(
      waiting.map((call) =>
        call.then(
          (lease) => lease,
          (error: Error) => error,
        ),
      ),
    );
    const [error, lease] = lost instanceof Error ? [lost, won] : [won, lost];
    expect(error).toBeInstanceOf(LockSupersededError);
    expect((lease as Lease).held).toBe(true);
    await (lease as Lease).release();
  });

  it('is entered again by its holder, which supersedes nobody', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    let waiting: Promise<Lease> | undefined;
    await ann.locks.withLock('index', NEWEST, async (outer) => {
      waiting = acquire(bob);
      await ann.runtime.advance(10);
      await ann.locks.withLock('index', NEWEST, async (inner) => expect(inner.owner).toBe(outer.owner));
    });
    expect(await end(bob, waiting as Promise<Lease>)).toBe(0);
  });

  it('has one place among the callers of other kinds, which wait in their order', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const first = await acquire(ann);
    const order: string[] = [];
    const note = (what: string) => async (lease: Lease) => {
      order.push(what);
      await lease.release();
    };
    const calls = [acquire(bob).catch((error: Error) => error)];
    await ann.runtime.advance(10);
    const plain = bob.locks.acquire('index').then(note('plain'));
    await ann.runtime.advance(10);
    const newest = acquire(ann).then(note('newest'));
    await ann.runtime.advance(10);
    expect(await calls[0]).toBeInstanceOf(LockSupersededError);
    await first.release();
    await ann.runtime.until(Promise.all([plain, newest]), 60_000);
    expect(order).toEqual(['newest', 'plain']);
  });

  it('is given up by the refresh if the message was lost', async () => {
    const [ann, bob, cem] = [await world.process(), await world.process(), await world.process()];
    const first = await acquire(ann);
    const second = acquire(bob);
    await ann.runtime.advance(10);
    bob.backend.deliver = () => {}; // messages are lost
    const third = acquire(cem);
    await ann.runtime.advance(100);
    expect(await Promise.race([second.catch(() => 'ended'), 'waits'])).toBe('waits');
    await ann.runtime.advance(5_000);
    expect(await errorOf(second)).toBeInstanceOf(LockSupersededError);
    await first.release();
    expect(await end(cem, third)).toBe(1);
  });

  it('asks for the last of the calls that came during an outage', async () => {
    const process = await world.process({ outageTimeout: 60_000 as never });
    process.backend.disturb(refused, 'acquire');
    const calls = [acquire(process), acquire(process), acquire(process)];
    await process.runtime.advance(5_000);
    process.backend.heal();
    expect(await end(process, calls[2])).toBe(2);
    for (const call of calls.slice(0, 2)) expect(await errorOf(call)).toBeInstanceOf(LockSupersededError);
  });

  it('tells listeners that a busy call was superseded', async () => {
    const process = await world.process();
    const busy: unknown[] = [];
    const outcomes: unknown[] = [];
    process.locks.on('busy', ({ superseded }) => busy.push(superseded));
    process.locks.on('failed', ({ outcome }) => outcomes.push(outcome));
    const first = await acquire(process);
    const calls = [acquire(process), acquire(process, { waitTime: 100 })];
    await process.runtime.advance(200);
    await Promise.all(calls.map(errorOf));
    expect(busy).toEqual([true, false]);
    expect(outcomes).toEqual(['superseded', 'busy']);
    await first.release();
  });

  it.each<[LockOptions, string]>([
    [{ type: 'fair' }, "newest and type: 'fair' exclude each other"],
    [{ type: 'read' }, "newest and type: 'read' exclude each other"],
    [{ type: 'fenced' }, "newest and type: 'fenced' exclude each other"],
    [{ permits: 2 }, 'newest and permits exclude each other'],
    [{ waitTime: 0 }, 'newest and waitTime: 0 exclude each other'],
    [{ newest: 1 as never }, 'newest is 1; it must be true or false'],
  ])('refuses %p', async (options, message) => {
    const { locks } = await world.process();
    const error = await errorOf(locks.acquire('index', { ...NEWEST, ...options }));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect((error as Error).message).toContain(message);
  });

  it('refuses several names, single flights and attempts that do not wait', async () => {
    const { locks } = await world.process();
    for (const call of [
      locks.acquire(['a', 'b'], NEWEST),
      locks.tryAcquire('a', NEWEST),
      locks.singleFlight('a', NEWEST as never, async () => 1),
    ])
      expect(await errorOf(call)).toBeInstanceOf(LockConfigurationError);
  });
});

describe('a lock for which only the newest caller waits, on Redis', () => {
  const world = openWorld('Redis');

  it('runs the first and the last call of a burst of five processes', async () => {
    const processes = await world.processes(5);
    for (let burst = 0; burst < 5; burst++) {
      let running = 0;
      const body = async ({ superseded }: Lease) => {
        expect(++running).toBe(1);
        await sleep(20);
        running--;
        return superseded;
      };
      const call = (n: number) =>
        processes[n % 5].locks.withLock('index', NEWEST, body).catch((error: Error) => error.name);
      const first = call(burst);
      await until(() => running === 1);
      let ended = 0;
      const others = Array.from({ length: 40 }, (_, n) => call(n).finally(() => ended++));
      // The order is that in which Redis gets the calls, and a process sends one after the other.
      await until(() => ended >= 39);
      const results = await Promise.all([first, ...others, call(burst + 3)]);
      expect(results.at(-1)).toEqual(expect.any(Number));
      const runs = results.filter((result): result is number => typeof result === 'number');
      expect(results.filter((result) => result === 'LockSupersededError')).toHaveLength(42 - runs.length);
      expect(runs.length).toBeLessThan(10);
    }
    for (const process of processes) await nothingIsLeft(process);
  });
});
