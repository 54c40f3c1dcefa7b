import { setTimeout as sleep } from 'node:timers/promises';
import type { Acquired, AcquireRequest, TransferRequest } from '../../../lib/backends/lock-backend.js';
import { LockLostError } from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import {
  leftovers,
  NOTHING,
  openVirtualWorld,
  openWorld,
  type ProcessSettings,
  STORES,
  type VirtualProcess,
} from '../../support/lock-world.js';
import { errorOf, latch, Section } from '../../support/section.js';
import { answerAfter, answerLost, type Disturbance, refused } from '../../support/watched/watched-backend.js';

describe('hand-off', () => {
  const world = openVirtualWorld();

  /** A lease that others of the same process wait for, with tokens reserved for them. */
  const wanted = async (count: number, options: LockOptions = {}, process?: VirtualProcess) => {
    const { locks, backend, runtime } = process ?? (await world.process());
    // The first of them is served alone; the next acquisition counts those behind it.
    const before = await locks.acquire('order', options);
    const leases = Array.from({ length: count + 1 }, () => locks.acquire('order', options));
    await runtime.advance(200); // longer than the first one may be handed on, and until the clock of the tokens is no longer ahead
    await before.release();
    const first = await leases[0];
    return { locks, backend, runtime, first, waiters: leases.slice(1) };
  };

  /**
   * The clock of the tokens starts ahead of the wall clock, and no tokens are reserved until the wall clock has caught
   * up.
   */
  const reachClock = async ({ locks, runtime }: VirtualProcess) => {
    await (await locks.acquire('another')).release();
    await runtime.advance(200);
  };

  it('passes on a watchdog lock without a command, with the same owner and a higher token', async () => {
    const { locks, backend, first, waiters } = await wanted(3);
    const events: unknown[] = [];
    locks.on('handoff', (event) => events.push(event));
    const commands = backend.count();
    const leases: Lease[] = [first];
    for (const waiter of waiters) {
      await (leases.at(-1) as Lease).release();
      leases.push(await waiter);
    }
    expect(backend.count()).toBe(commands);
    expect(leases.map(({ owner }) => owner)).toEqual(leases.map(() => first.owner));
    expect(leases.map(({ fencingToken }) => fencingToken - first.fencingToken)).toEqual([0, 1, 2, 3]);
    expect(events.length).toBe(3);
    expect(events[0]).toMatchObject({ name: 'order', owner: first.owner, fencingToken: first.fencingToken + 1 });
    await leases[3].release();
  });

  it.each([
    ['fixed leases', { leaseTime: '30s' }, { leaseTime: '30s' }],
    ['a fixed lease to one of the watchdog', { leaseTime: '30s' }, {}],
    ['a lease of the watchdog to a fixed one', {}, { leaseTime: '30s' }],
  ] as const)('passes on %s by one command, to a new owner with a new lease', async (_, mine, theirs) => {
    const { locks, backend, runtime } = await world.process();
    const first = await locks.acquire('order', mine);
    const waiting = locks.acquire('order', theirs);
    await runtime.advance(10);
    await first.release();
    const second = await waiting;
    expect(backend.commands).toEqual(['acquire', 'transfer']);
    expect(second.owner).not.toBe(first.owner);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(second.remainingTime()).toBeGreaterThan(29_690);
    await runtime.advance(60_000);
    expect(second.held).toBe('leaseTime' in theirs === false);
    await second.release().catch(() => {});
  });

  it('passes on a lock by a command when its lease was confirmed more than half a lease ago', async () => {
    const { locks, backend, runtime } = await world.process();
    const before = await locks.acquire('order');
    const leases = Array.from({ length: 3 }, () => locks.acquire('order'));
    await runtime.advance(200); // longer than the first one may be handed on, and until the clock of the tokens is no longer ahead
    const replies: Acquired[] = [];
    backend.disturb(async (execute) => {
      const reply = await execute();
      await runtimeSleep(runtime, 16_000);
      replies.push(reply);
      return reply;
    }, 'acquire');
    backend.disturb(refused, 'renew');
    await before.release();
    const first = await runtime.until(leases[0]);
    // Everything else that a hand-off needs is there: tokens, and a budget that is unused.
    expect(replies.map(({ reserved }) => reserved)).toEqual([64]);
    await first.release();
    const next = await leases[1];
    expect(backend.commands.at(-1)).toBe('transfer');
    expect(next.owner).not.toBe(first.owner);
    expect(next.remainingTime()).toBeGreaterThan(29_000);
    await next.release();
    await (await leases[2]).release();
  });

  it('passes on a lock by a command while another command about it is under way', async () => {
    const { backend, first, waiters } = await wanted(1);
    backend.disturb(() => new Promise(() => {}), 'renew');
    void first.extend('60s');
    await first.release();
    const next = await waiters[0];
    expect(backend.commands.at(-1)).toBe('transfer');
    expect(next.owner).not.toBe(first.owner);
    await next.release();
  });

  it('passes on a watchdog lock by a command to a fixed lease of the same length', async () => {
    const { locks, backend, runtime, first, waiters } = await wanted(1);
    const fixed = locks.acquire('order', { leaseTime: '30s' });
    await first.release();
    const second = await waiters[0];
    expect(backend.commands.at(-1)).not.toBe('transfer');
    await second.release();
    const third = await fixed;
    expect(backend.commands.at(-1)).toBe('transfer');
    await runtime.advance(30_000);
    expect(third.held).toBe(false);
    await third.release().catch(() => {});
  });

  it('has tokens that strictly grow, whichever way the lock goes', async () => {
    const processes = [await world.process(), await world.process()];
    const tokens: number[] = [];
    const all = processes.flatMap(({ locks, runtime }) =>
      Array.from({ length: 200 }, (_, i) =>
        locks.withLock('order', i % 5 === 0 ? { leaseTime: '9s' } : {}, async ({ fencingToken }) => {
          tokens.push(fencingToken);
          if (i % 3 === 0) await new Promise<void>((resolve) => runtime.timer(1, resolve));
        }),
      ),
    );
    await world.runtime.until(Promise.all(all));
    expect(tokens.length).toBe(400);
    expect(tokens.every((token, i) => i === 0 || token > tokens[i - 1])).toBe(true);
  });

  it('is not affected by whoever held the lease before', async () => {
    const { first, waiters, backend } = await wanted(1);
    await first.release();
    const next = await waiters[0];
    const commands = backend.count();
    await first.release();
    expect(first.held).toBe(false);
    await errorOf(first.extend('1m'));
    expect(backend.count()).toBe(commands);
    expect(next.held).toBe(true);
    await next.release();
  });

  describe('has a budget, so that another process gets its turn', () => {
    it('of 25 ms', async () => {
      const { locks, runtime } = await world.process();
      const other = await world.process();
      let bodies = 0;
      const body = () =>
        new Promise<void>((resolve) => {
          bodies++;
          runtime.timer(5, resolve);
        });
      const all = Array.from({ length: 200 }, () => locks.withLock('order', body));
      await runtime.advance(52);
      const before = bodies;
      const theirs = await runtime.until(other.locks.acquire('order'));
      expect(bodies - before).toBeLessThan(15);
      await theirs.release();
      await runtime.until(Promise.all(all));
    });

    it('of the tokens that were reserved, when bodies take no time at all', async () => {
      const { locks, backend, runtime } = await world.process();
      const other = await world.process();
      const before = await locks.acquire('order');
      const tokens: number[] = [];
      const all = Array.from({ length: 5_000 }, () =>
        locks.withLock('order', async ({ fencingToken }) => void tokens.push(fencingToken)),
      );
      const reserved = new Set<number>();
      const bodies: number[] = [];
      backend.disturb(async (execute) => {
        const reply: Acquired = await execute();
        for (let token = 0; token <= reply.reserved; token++) reserved.add(reply.token + token);
        return reply;
      }, 'acquire');
      backend.disturb((execute) => {
        bodies.push(tokens.length);
        return execute();
      }, 'release');
      await runtime.advance(200); // longer than the first one may be handed on, and until the clock of the tokens is no longer ahead
      const theirs = other.locks.acquire('order');
      await before.release();
      await (await runtime.until(theirs)).release();
      await runtime.until(Promise.all(all));
      for (const grant of backend.begun)
        for (let token = 0; token <= grant.reserved; token++) reserved.add(grant.token + token);
      expect(bodies.slice(0, 2)).toEqual([0, 65]);
      expect(tokens.length).toBe(5_000);
      expect(tokens.filter((token) => !reserved.has(token))).toEqual([]);
    });

    it('with as many tokens as fit in its time at the pace of earlier bodies', async () => {
      const process = await world.process();
      const { locks, backend, runtime } = process;
      await reachClock(process);
      const reserves: number[] = [];
      const watch: Disturbance = (execute, request) => {
        reserves.push((request as AcquireRequest | TransferRequest).reserve);
        return execute();
      };
      backend.disturb(watch, 'acquire', 'transfer');
      const before = await locks.acquire('order');
      const bodies = (time: number, count: number) =>
        Array.from({ length: count }, () => locks.withLock('order', () => runtime.block(time)));
      const all = [...bodies(0.05, 2_000), ...bodies(4, 80)];
      await before.release();
      await runtime.until(Promise.all(all));
      // 64 bodies take 3.2 ms, so 400 of them fit into the 20 ms; later, only five do.
      expect([...new Set(reserves)]).toEqual([0, 64, 512, 256, 128, 32, 16, 8, 4]);
      expect(reserves.slice(-4, -1)).toEqual([4, 4, 4]);
    });
  });

  describe('by a command', () => {
    const passing = async (options: LockOptions = { leaseTime: '20s' }, settings: ProcessSettings = {}) => {
      const process = await world.process(settings);
      const { locks } = process;
      await reachClock(process);
      const first = await locks.acquire('order', options);
      return { ...process, first };
    };

    it('that finds nothing reports the loss, and serves the waiter again', async () => {
      const { locks, runtime, first } = await passing();
      const other = await world.process();
      const waiting = locks.acquire('order');
      await other.locks.forceRelease('order');
      expect(await errorOf(first.release())).toBeInstanceOf(LockLostError);
      const next = await runtime.until(waiting);
      expect(next.held).toBe(true);
      await next.release();
    });

    it.each([
      ['refused', refused],
      ['not answered', answerLost],
    ])('that is %s still serves the waiter, and leaves nothing behind', async (_, disturbance) => {
      const process = await passing();
      const { locks, backend, runtime, first, logger } = process;
      const waiting = locks.acquire('order');
      backend.disturb(disturbance, 'transfer');
      await first.release();
      const next = await runtime.until(waiting);
      expect(runtime.monotonic()).toBeLessThan(5_000);
      expect((await locks.inspect('order')).owners.map(({ owner }) => owner)).toEqual([next.owner]);
      await next.release();
      await runtime.advance(5_000);
      expect(await locks.isLocked('order')).toBe(false);
      expect(leftovers(process)).toEqual(NOTHING);
      expect(logger.warnings).toEqual([]); // the first repetition was answered
    });

    it.each<[string, Disturbance]>([
      ['finds nothing', async () => undefined],
      ['is not answered', answerLost],
    ])('that %s spends the owner of the waiter', async (_, disturbance) => {
      const { locks, backend, runtime, first } = await passing({ leaseTime: '20s' }, { onLost: 'warn' });
      const owners: string[] = [];
      backend.disturb((execute, request) => {
        owners.push((request as TransferRequest).to);
        return disturbance(execute, request);
      }, 'transfer');
      const waiting = locks.acquire('order', { leaseTime: '20s' });
      await first.release();
      const next = await runtime.until(waiting);
      expect(owners).toHaveLength(1);
      expect(next.owner).not.toBe(owners[0]);
      await next.release();
    });

    it.each(['aborts', 'times out'])('to a waiter that %s meanwhile goes on to the next one', async (how) => {
      const process = await passing();
      const { locks, backend, runtime, first } = process;
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'transfer');
      const abort = new AbortController();
      const leaving = errorOf(locks.acquire('order', how === 'aborts' ? { signal: abort.signal } : { waitTime: 100 }));
      const waiting = locks.acquire('order');
      const released = first.release();
      await runtime.advance(101);
      abort.abort();
      await leaving;
      backend.heal();
      answer.open();
      await released;
      const next = await runtime.until(waiting);
      expect(next.held).toBe(true);
      await next.release();
      await runtime.advance(1_000);
      expect(leftovers(process)).toEqual(NOTHING);
      expect(await locks.isLocked('order')).toBe(false);
    });

    it('that is answered after the new lease has ended does not give that lease out', async () => {
      const { locks, backend, runtime, first } = await passing();
      const waiting = locks.acquire('order', { leaseTime: '5s' });
      backend.disturb(async (execute) => {
        const reply = await execute();
        runtime.block(6_000);
        return reply;
      }, 'transfer');
      await first.release();
      const next = await runtime.until(waiting);
      expect(next.held).toBe(true);
      await next.release();
    });

    it('reserves tokens for the next ones, and keeps to the budget', async () => {
      const { locks, backend, runtime, first } = await passing();
      const passes: [TransferRequest, Acquired][] = [];
      backend.disturb(async (execute, request) => {
        const reply = await execute();
        passes.push([request as TransferRequest, reply]);
        return reply;
      }, 'transfer');
      const all = Array.from({ length: 40 }, () => locks.withLock('order', () => runtimeSleep(runtime, 1)));
      await first.release();
      await runtime.until(Promise.all(all));
      expect(passes.length).toBe(1);
      expect(passes[0][0].reserve).toBe(64);
      expect(passes[0][1].reserved).toBe(64);
    });
  });

  it('passes on nothing that was released by force while it yielded to the event loop', async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    await reachClock(process);
    const nextTurn = runtime.nextTurn.bind(runtime);
    let wasHeld: boolean | undefined;
    runtime.nextTurn = (continuation) => {
      runtime.nextTurn = nextTurn;
      void locks.forceRelease('order').then((released) => {
        wasHeld = released;
        nextTurn(continuation);
      });
    };
    const strangers: string[] = [];
    const body = async ({ owner }: Lease) => {
      const { owners } = await locks.inspect('order');
      if (owners.length !== 1 || owners[0].owner !== owner) strangers.push(owner);
    };
    await runtime.until(Promise.all(Array.from({ length: 1_000 }, () => locks.withLock('order', body))));
    expect(wasHeld).toBe(true);
    expect(strangers).toEqual([]);
  });

  it('yields to the event loop at every 256th, and copes with a lock that is lost, or that nobody wants, by then', async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    await reachClock(process);
    for (const happening of ['nothing', 'loss', 'abort'] as const) {
      const abort = new AbortController();
      const turn = runtime.nextTurn.bind(runtime);
      let yields = 0;
      runtime.nextTurn = (callback) => {
        yields++;
        if (happening === 'abort') abort.abort();
        if (happening === 'loss') runtime.block(40_000);
        turn(callback);
      };
      const results = await runtime.until(
        Promise.allSettled(
          Array.from({ length: 2_000 }, (_, i) =>
            locks.withLock('order', i < 1_990 ? { signal: abort.signal } : {}, async () => {}),
          ),
        ),
      );
      runtime.nextTurn = turn;
      expect(yields).toBeGreaterThan(0);
      expect(results.slice(1_990).every(({ status }) => status === 'fulfilled')).toBe(true);
      if (happening !== 'abort') expect(results.every(({ status }) => status === 'fulfilled')).toBe(true);
    }
  });
});

describe.each(STORES)('hand-off, on %s', (store) => {
  const world = openWorld(store);

  it('lets timers and sockets run among thousands of bodies that never yield', async () => {
    const { locks, runtime } = await world.process();
    let longest = 0;
    let before = performance.now();
    let ticks = 0;
    const ticker = setInterval(() => {
      ticks++;
      longest = Math.max(longest, performance.now() - before);
      before = performance.now();
    }, 1);
    const section = new Section();
    await Promise.all(Array.from({ length: 10_000 }, () => locks.withLock('order', () => section.pass())));
    clearInterval(ticker);
    expect(section.most).toBe(1);
    expect(runtime.turns).toBeGreaterThanOrEqual(10);
    expect(ticks).toBeGreaterThan(5);
  });

  it('does not shut out another process: both are served in turn', async () => {
    const [process, other] = await world.processes(2);
    const section = new Section();
    const stop = latch();
    let stopped = false;
    void stop.promise.then(() => {
      stopped = true;
    });
    const hog = Array.from({ length: 50 }, async () => {
      while (!stopped) await process.locks.withLock('order', () => section.pass('hog'));
    });
    for (let i = 0; i < 20; i++) {
      await other.locks.withLock('order', () => section.pass('other'));
      await sleep(1);
    }
    stop.open();
    await Promise.all(hog);
    expect(section.most).toBe(1);
  });
});

function runtimeSleep(runtime: VirtualProcess['runtime'], time: number): Promise<void> {
  return new Promise((resolve) => runtime.timer(time, resolve));
}
