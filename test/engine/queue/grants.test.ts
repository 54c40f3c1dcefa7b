import '../../contract/support/matchers.js';
import type { Grant, Wake } from '../../../lib/backends/lock-backend.js';
import { LockAbortedError, LockLostError } from '../../../lib/engine/errors.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { ms, openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

type Message = Extract<Wake, { kind: 'message' }>;

const LEASE = 30_000;

describe('a lock that a message grants', () => {
  const world = openVirtualWorld();

  /** Ann holds the lock, and bob waits in line with his only caller. */
  const waiting = async (options: LockOptions = {}) => {
    const settings = { watchdogTimeout: ms(LEASE) };
    const [ann, bob] = [await world.process(settings), await world.process(settings)];
    const { runtime } = bob;
    const held = await ann.locks.acquire('order');
    const served = bob.locks.acquire('order', options);
    await runtime.settle();
    bob.backend.commands.length = 0;
    return { ann, bob, runtime, held, served };
  };
  const ownersAt = async ({ locks }: VirtualProcess) => (await locks.inspect('order')).owners.map(({ owner }) => owner);
  const changed = (change: (grant: Grant) => Grant | undefined) => (wake: Wake, listener: (wake: Wake) => void) => {
    const { grant, ...others } = wake as Message;
    listener({ ...others, ...(grant && { grant: change(grant) }) } as Wake);
  };

  it('is held at once, and costs its process no command before its body ends', async () => {
    const { bob, runtime, held, served } = await waiting();
    await held.release();
    const lease = await runtime.until(served);
    expect(lease.held).toBe(true);
    expect(lease.fencingToken).toBeGreaterThan(held.fencingToken);
    expect(lease.remainingTime()).toBeWithin(LEASE - 1_000, LEASE);
    expect(await ownersAt(bob)).toEqual([lease.owner]);
    await runtime.advance(LEASE / 4);
    lease.assertHeld();
    await lease.release();
    expect(bob.backend.commands.filter((command) => command !== 'inspect')).toEqual(['release']);
    expect((await bob.locks.inspect('order')).locked).toBe(false);
  });

  it('is renewed like any other, and at a third of its lease for the first time', async () => {
    const { bob, runtime, held, served } = await waiting();
    const renewed: string[] = [];
    bob.locks.on('renewed', ({ name }) => void renewed.push(name));
    await held.release();
    const lease = await runtime.until(served);
    await runtime.advance(LEASE / 3 - 1_000);
    expect(bob.backend.count('renew')).toBe(0);
    await runtime.advance(1_500);
    expect([bob.backend.count('renew'), renewed]).toEqual([1, ['order']]);
    await runtime.advance(2 * LEASE);
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('is lost when a renewal finds it gone', async () => {
    const { bob, runtime, held, served } = await waiting();
    await held.release();
    const lease = await runtime.until(served);
    const { signal } = lease;
    bob.backend.disturb(async () => false, 'renew');
    await runtime.advance(LEASE / 2);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    bob.backend.heal();
    expect((await errorOf(lease.release()))?.message).toContain('it no longer existed at renewal');
  });

  it('is kept by a body that blocks the event loop for less than its lease, and lost by one that blocks longer', async () => {
    for (const [time, isLost] of [
      [LEASE * 0.9, false],
      [LEASE, true],
    ] as const) {
      const { runtime, held, served } = await waiting();
      await held.release();
      const lease = await runtime.until(served);
      const { signal } = lease;
      runtime.block(time);
      await runtime.advance(10);
      expect([signal.aborted, lease.held]).toEqual([isLost, !isLost]);
      if (isLost) await errorOf(lease.release());
      else await lease.release();
      await runtime.advance(LEASE);
    }
  });

  describe('when the network stands still at the hand-over', () => {
    /** Neither messages nor answers arrive for `time` ms. */
    const stalled = async (time: number) => {
      const scene = await waiting();
      const { bob, runtime, held, served } = scene;
      const over = latch();
      runtime.timer(time, over.open);
      bob.backend.disturb(answerAfter(over.promise), 'refreshWaiters', 'acquire');
      bob.backend.deliver = (wake, listener) => void over.promise.then(() => listener(wake));
      await held.release();
      const lease = await runtime.until(served, 4 * LEASE);
      return { ...scene, lease };
    };

    it('is held after less than a third of its lease, without a command', async () => {
      const { bob, lease, runtime } = await stalled(LEASE / 4);
      expect(runtime.monotonic()).toBeWithin(LEASE / 4, LEASE / 4 + 100);
      expect(lease.remainingTime()).toBeWithin(LEASE / 2, (LEASE * 3) / 4);
      expect(bob.backend.count('acquire')).toBe(0);
      expect(bob.backend.begun).toHaveLength(1);
      await runtime.advance(2 * LEASE);
      lease.assertHeld();
      await lease.release();
    });

    it.each([LEASE / 2, 2 * LEASE, 3 * LEASE])('is asked for after %d ms, and nothing is lost', async (time) => {
      const { bob, ann, lease, runtime } = await stalled(time);
      expect(bob.backend.count('acquire')).toBeGreaterThan(0);
      expect(bob.backend.begun).toEqual([]);
      expect(await ownersAt(ann)).toEqual([lease.owner]);
      await runtime.advance(2 * LEASE);
      lease.assertHeld();
      await lease.release();
    });
  });

  it('is held after its message was lost when its place is refreshed, under the same owner', async () => {
    const { ann, bob, runtime, held, served } = await waiting();
    let late = () => {};
    bob.backend.deliver = (wake, listener) => {
      late = () => listener(wake);
    };
    await held.release();
    const owners = await ownersAt(ann);
    const lease = await runtime.until(served);
    expect(bob.backend.commands).toEqual(['refreshWaiters', 'acquire']);
    expect([lease.owner]).toEqual(owners);
    late();
    await runtime.settle();
    expect([bob.backend.begun, bob.backend.count()]).toEqual([[], 2]);
    lease.assertHeld();
    await lease.release();
    expect((await ann.locks.inspect('order')).locked).toBe(false);
  });

  describe('is handed off in its process', () => {
    /** As {@link waiting}, but with three callers, whose tokens are reserved when the first one asks. */
    const crowd = async () => {
      const settings = { watchdogTimeout: ms(LEASE) };
      const [ann, bob] = [await world.process(settings), await world.process(settings)];
      const { runtime } = bob;
      const held = await ann.locks.acquire('order');
      const callers = [0, 1, 2].map(() => bob.locks.acquire('order'));
      await runtime.advance(200); // until the clock of the tokens is no longer ahead
      bob.backend.commands.length = 0;
      return { ann, bob, runtime, held, callers };
    };

    it('without a command, in the first half of its lease', async () => {
      const { ann, bob, runtime, held, callers } = await crowd();
      await held.release();
      const first = await runtime.until(callers[0]);
      await first.release();
      const second = await runtime.until(callers[1]);
      expect(bob.backend.commands).toEqual([]);
      expect([second.owner, second.fencingToken]).toEqual([first.owner, first.fencingToken + 1]);
      await runtime.advance(LEASE / 2);
      const released = second.release();
      const third = await runtime.until(callers[2]);
      await released;
      await third.release();
      expect((await ann.locks.inspect('order')).locked).toBe(false);
    });

    it('but not while an extension is unanswered', async () => {
      const { bob, runtime, held, callers } = await crowd();
      const answer = latch();
      bob.backend.disturb(answerAfter(answer.promise), 'renew');
      await held.release();
      const first = await runtime.until(callers[0]);
      const extended = first.extend('2m');
      const released = first.release();
      const second = await runtime.until(callers[1]);
      expect(second.owner).not.toBe(first.owner);
      answer.open();
      await Promise.all([released, extended]);
      await second.release();
      await (await runtime.until(callers[2])).release();
    });
  });

  it('has the lease that the user chose from the backend, and only that', async () => {
    const { bob, runtime, held, served } = await waiting({ leaseTime: '5s' });
    await held.release();
    const owners = await ownersAt(bob);
    const lease = await runtime.until(served);
    expect([lease.owner]).toEqual(owners);
    expect([bob.backend.count('acquire'), bob.backend.begun]).toEqual([1, []]);
    await runtime.advance(4_500);
    expect(lease.held).toBe(true);
    await runtime.advance(600);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(bob.backend.count('renew')).toBe(0);
    await errorOf(lease.release());
  });

  it('has a fixed lease that is longer than what is granted, before its body begins', async () => {
    const { ann, bob, runtime, held, served } = await waiting({ leaseTime: '1h' });
    await held.release();
    const lease = await runtime.until(served);
    expect(bob.backend.commands).toEqual(['acquire']);
    await runtime.advance(20 * LEASE);
    expect([lease.held, bob.backend.count('renew')]).toEqual([true, 0]);
    expect(await ann.locks.tryAcquire('order')).toBeNull();
    await lease.release();
  });

  it('can be handed on within the process, extended, detached and adopted', async () => {
    const { ann, bob, runtime, held, served } = await waiting();
    const next = bob.locks.acquire('order');
    await held.release();
    const lease = await runtime.until(served);
    await lease.extend('2m');
    expect(lease.remainingTime()).toBeGreaterThan(100_000);
    await runtime.until(lease.release());
    const second = await runtime.until(next);
    const ticket = await runtime.until(second.detach({ for: '1m' }));
    const adopted = await ann.locks.adopt(ticket);
    await runtime.advance(2 * LEASE);
    adopted.assertHeld();
    await adopted.release();
    expect((await bob.locks.inspect('order')).locked).toBe(false);
  });

  it('goes to the place of another process when it was detached and the adopter gives it back', async () => {
    const { ann, bob, runtime, held, served } = await waiting();
    await held.release();
    const lease = await runtime.until(served);
    const ticket = await runtime.until(lease.detach({ for: '1m' }));
    const next = bob.locks.acquire('order');
    await runtime.settle();
    const adopted = await ann.locks.adopt(ticket);
    await adopted.release();
    const again = await runtime.until(next, 100);
    expect(again.held).toBe(true);
    await again.release();
  });

  it('stays locked for holdAtLeast after a body that ended earlier, and then goes on', async () => {
    const { ann, bob, runtime, held, served } = await waiting();
    await held.release();
    const start = runtime.monotonic();
    const lease = await runtime.until(served);
    const next = ann.locks.acquire('order');
    expect(await bob.locks.holdWhile(lease, () => 42, { holdAtLeast: ms(4_000) })).toBe(42);
    await (await runtime.until(next)).release();
    expect(runtime.monotonic() - start).toBeWithin(4_000, 4_200);
  });

  it('is left to others after holdAtMost', async () => {
    const { ann, bob, runtime, held, served } = await waiting({ waitTime: 1 });
    await runtime.advance(2);
    await errorOf(served);
    const end = latch();
    let signal: AbortSignal | undefined;
    const body = bob.locks.withLock('order', { holdAtMost: '1m', onLost: 'warn' }, (lease) => {
      signal = lease.signal;
      return end.promise;
    });
    await runtime.settle();
    await held.release();
    await runtime.advance(59_000);
    expect([bob.backend.begun.length, signal?.aborted]).toEqual([1, false]);
    await runtime.advance(2_000);
    expect(signal?.reason).toBeInstanceOf(LockAbortedError);
    const next = await runtime.until(ann.locks.acquire('order'), 2 * LEASE);
    end.open();
    await body;
    expect(next.held).toBe(true);
    await next.release();
  });

  it('is asked for anew after its process has released it by force', async () => {
    const { bob, runtime, held, served } = await waiting();
    const { backend } = bob;
    const deliver = backend.deliver;
    let late = () => {};
    backend.deliver = (wake, listener) => {
      late = () => listener(wake);
      backend.deliver = deliver;
    };
    await held.release();
    expect(await bob.locks.forceRelease('order')).toBe(true);
    late();
    const lease = await runtime.until(served);
    await runtime.settle();
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it.each(['ann', 'bob'] as const)('is lost by a forced release after it began: by %s', async (who) => {
    const scene = await waiting();
    const { ann, runtime, held, served } = scene;
    await held.release();
    const lease = await runtime.until(served);
    await runtime.advance(1_500); // from then on, it listens for forced releases by others
    await scene[who].locks.forceRelease('order');
    await runtime.settle();
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(lease.held).toBe(false);
    await errorOf(lease.release());
    await (await runtime.until(ann.locks.acquire('order'))).release();
  });

  it('is noticed by the next caller when one that tries once has asked after the message', async () => {
    const { bob, runtime, held, served } = await waiting();
    const { locks, backend } = bob;
    await held.release();
    const first = await runtime.until(served);
    backend.disturb(refused, 'release');
    await first.release(); // in the background, which those that ask meanwhile wait for
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const leaves = new AbortController();
    const leaver = errorOf(locks.acquire('order', { signal: leaves.signal }));
    await runtime.settle();
    const [trier, patient] = [locks.tryAcquire('order'), locks.acquire('order')];
    await runtime.settle();
    backend.heal();
    backend.disturb(refused, 'release');
    answer.open();
    await runtime.settle();
    leaves.abort();
    await leaver;
    backend.heal();
    const start = runtime.monotonic();
    expect(await runtime.until(trier)).toBeNull();
    const lease = await runtime.until(patient);
    expect(runtime.monotonic() - start).toBeLessThan(500);
    await lease.release();
  });

  it('goes to the next caller if the first one has left before the message, without a command', async () => {
    const { bob, runtime, held, served } = await waiting({ waitTime: 5 });
    const next = bob.locks.acquire('order');
    let hear = () => {};
    bob.backend.deliver = (wake, listener) => {
      hear = () => listener(wake);
    };
    await held.release();
    expect(await errorOf(runtime.until(served))).toMatchObject({ name: 'LockBusyError' });
    hear();
    const lease = await runtime.until(next);
    expect(bob.backend.commands).toEqual([]);
    lease.assertHeld();
    await lease.release();
  });

  it('goes to another process if all have left before the message', async () => {
    const { ann, bob, runtime, held, served } = await waiting({ waitTime: 5 });
    let hear = () => {};
    bob.backend.deliver = (wake, listener) => {
      hear = () => listener(wake);
    };
    await held.release();
    const others = ann.locks.acquire('order');
    expect(await errorOf(runtime.until(served))).toMatchObject({ name: 'LockBusyError' });
    await (await runtime.until(others)).release();
    expect(bob.backend.commands).toEqual(['removeWaiter']);
    hear();
    await runtime.settle();
    // Nobody knows whether that has come too late, so it is answered.
    expect([bob.backend.begun, bob.backend.commands]).toEqual([[], ['removeWaiter', 'removeWaiter']]);
  });

  it('ends with the shutdown of its process, and so does a place with many callers behind it', async () => {
    const { ann, bob, runtime, held, served } = await waiting();
    let ran = 0;
    const behind = Array.from({ length: 1_000 }, () => bob.locks.withLock('order', () => void ran++));
    const settled = Promise.allSettled(behind);
    await held.release();
    const lease = await runtime.until(served);
    const others = ann.locks.acquire('order');
    const closed = bob.locks.close();
    await lease.release();
    await runtime.until(closed);
    const refusals = (await settled).filter(({ status }) => status === 'rejected');
    expect(ran + refusals.length).toBe(1_000);
    const start = runtime.monotonic();
    await (await runtime.until(others)).release();
    expect(runtime.monotonic() - start).toBeLessThan(500);
  });

  it('is given back by the shutdown of the first in line, whose message has not come yet', async () => {
    const { ann, bob, runtime, held, served } = await waiting();
    const refusals = Promise.all([served, ...[1, 2, 3].map(() => bob.locks.acquire('order'))].map(errorOf));
    bob.backend.deliver = () => {};
    await held.release();
    const others = ann.locks.acquire('order');
    await runtime.until(bob.locks.close());
    for (const error of await refusals) expect(error).toBeInstanceOf(LockAbortedError);
    const start = runtime.monotonic();
    await (await runtime.until(others)).release();
    expect(runtime.monotonic() - start).toBeLessThan(500);
  });

  describe('is asked for under the same owner', () => {
    const isAskedFor = async (
      prepare: (given: Awaited<ReturnType<typeof waiting>>) => void,
      options?: LockOptions,
      { longest = LEASE }: { readonly longest?: number } = {},
    ) => {
      const given = await waiting(options);
      prepare(given);
      const { ann, bob, runtime, held, served } = given;
      await held.release();
      const owners = await ownersAt(ann);
      const lease = await runtime.until(served);
      expect(bob.backend.commands).toEqual(['acquire']);
      expect(bob.backend.begun).toEqual([]);
      expect([lease.owner]).toEqual(owners);
      expect(lease.remainingTime()).toBeLessThanOrEqual(longest);
      expect(lease.held).toBe(true);
      await lease.release();
    };

    it('if the message has the wrong nonce', () =>
      isAskedFor(({ bob }) => {
        bob.backend.deliver = changed((grant) => ({ ...grant, nonce: 'forged' }));
      }));

    it('if the message does not say with which lease, as those of earlier versions', () =>
      isAskedFor(({ bob }) => {
        bob.backend.deliver = changed(() => undefined);
      }));

    it('if it wants a shorter lease than is granted, and has only that', () =>
      isAskedFor(() => {}, { leaseTime: 800 }, { longest: 800 }));

    it('if its caller is the newest one, which learns from the answer how many it has superseded', () =>
      isAskedFor(() => {}, { newest: true }));

    it('if the machine was suspended since', () =>
      isAskedFor(({ bob, runtime }) => {
        bob.backend.deliver = (wake, listener) => {
          runtime.suspend(LEASE / 2);
          listener(wake);
        };
      }));

    it('if the wall clock has jumped back since', () =>
      isAskedFor(({ bob, runtime }) => {
        bob.backend.deliver = (wake, listener) => {
          runtime.setWallClock(-5_000);
          listener(wake);
        };
      }));
  });

  it('is granted once by a message that arrives twice, and not at all by one for an earlier request', async () => {
    const { ann, bob, runtime, held, served } = await waiting();
    const messages: Wake[] = [];
    let hear: (wake: Wake) => void = () => {};
    bob.backend.deliver = (wake, listener) => {
      messages.push(wake);
      hear = listener;
      listener(wake);
    };
    await held.release();
    const lease = await runtime.until(served);
    const again = bob.locks.acquire('order');
    await runtime.settle();
    hear(messages[0]);
    await runtime.settle();
    expect(bob.backend.begun).toHaveLength(1);
    expect(lease.held).toBe(true);
    const others = ann.locks.acquire('order');
    await runtime.settle();
    await lease.release();
    const leases = Promise.all([again, others].map(async (granted) => (await granted).release()));
    hear(messages[0]);
    await runtime.until(leases);
  });

  it('ends with its body, without a renewal of what was released', async () => {
    const { ann, bob, runtime, held, served } = await waiting();
    await held.release();
    await (await runtime.until(served)).release();
    await runtime.advance(2 * LEASE);
    expect(bob.backend.commands).toEqual(['release']);
    await (await runtime.until(ann.locks.acquire('order'))).release();
  });
});
