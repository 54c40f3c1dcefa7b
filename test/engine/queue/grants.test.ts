import '../../contract/support/matchers.js';
import { CLAIM, type Grant, type Wake } from '../../../lib/backends/lock-backend.js';
import { LockLostError } from '../../../lib/engine/errors.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { ms, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, answerLost, refused } from '../../support/watched/watched-backend.js';

type Message = Extract<Wake, { kind: 'message' }>;

describe('a lock that a message grants', () => {
  const world = openVirtualWorld();

  /** Ann holds the lock, and bob waits in line with his only caller. */
  const waiting = async (options: LockOptions = {}) => {
    const settings = { watchdogTimeout: ms(30_000) };
    const [ann, bob] = [await world.process(settings), await world.process(settings)];
    const { runtime } = bob;
    const held = await ann.locks.acquire('order');
    const served = bob.locks.acquire('order', options);
    await runtime.settle();
    bob.backend.commands.length = 0;
    return { ann, bob, runtime, held, served };
  };
  const changed = (change: (grant: Grant) => Grant | undefined) => (wake: Wake, listener: (wake: Wake) => void) => {
    const { grant, ...others } = wake as Message;
    listener({ ...others, ...(grant && { grant: change(grant) }) } as Wake);
  };

  it('is held before the backend has answered, and has its full lease then', async () => {
    const { bob, runtime, held, served } = await waiting();
    const answer = latch();
    bob.backend.disturb(answerAfter(answer.promise), 'accept');
    await held.release();
    const lease = await runtime.until(served);
    expect(bob.backend.commands).toEqual(['accept']);
    expect(lease.held).toBe(true);
    expect(lease.fencingToken).toBeGreaterThan(held.fencingToken);
    expect(lease.remainingTime()).toBeWithin(1, CLAIM);
    answer.open();
    await runtime.settle();
    expect(lease.remainingTime()).toBeWithin(29_000, 30_000);
    await runtime.advance(60_000);
    expect(lease.held).toBe(true);
    await lease.release();
    expect((await bob.locks.inspect('order')).locked).toBe(false);
  });

  describe('is handed off in its process', () => {
    /** As {@link waiting}, but with three callers, whose tokens are reserved when the first one asks. */
    const crowd = async () => {
      const settings = { watchdogTimeout: ms(30_000) };
      const [ann, bob] = [await world.process(settings), await world.process(settings)];
      const { runtime } = bob;
      const held = await ann.locks.acquire('order');
      const callers = [0, 1, 2].map(() => bob.locks.acquire('order'));
      await runtime.advance(200); // until the clock of the tokens is no longer ahead
      bob.backend.commands.length = 0;
      return { ann, bob, runtime, held, callers };
    };

    it('before the backend has answered, in the first half of its claim', async () => {
      const { ann, bob, runtime, held, callers } = await crowd();
      const answer = latch();
      bob.backend.disturb(answerAfter(answer.promise), 'accept');
      await held.release();
      const first = await runtime.until(callers[0]);
      await first.release();
      const second = await runtime.until(callers[1]);
      expect(bob.backend.commands).toEqual(['accept']);
      expect([second.owner, second.fencingToken]).toEqual([first.owner, first.fencingToken + 1]);
      await runtime.advance(CLAIM / 2);
      const released = second.release();
      const third = await runtime.until(callers[2]);
      expect(third.owner).not.toBe(first.owner);
      await released;
      answer.open();
      await runtime.settle();
      await third.release();
      expect((await ann.locks.inspect('order')).locked).toBe(false);
    });

    it('but not while an extension is unanswered, and its full lease is about to be requested again', async () => {
      const { bob, runtime, held, callers } = await crowd();
      const answer = latch();
      bob.backend.disturb(answerLost, 'accept');
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

  it('has its full lease, which the user chose, from the backend, and only that', async () => {
    const { bob, runtime, held, served } = await waiting({ leaseTime: '5s' });
    const renewed: string[] = [];
    bob.locks.on('renewed', ({ name }) => void renewed.push(name));
    await held.release();
    const lease = await runtime.until(served);
    await runtime.advance(4_500);
    expect(lease.held).toBe(true);
    await runtime.advance(600);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(bob.backend.count('accept')).toBe(1);
    expect(renewed).toEqual([]);
    await errorOf(lease.release());
  });

  it('is not taken to last longer than a shorter lease that was requested since, even without an answer', async () => {
    const { ann, bob, runtime, held, served } = await waiting({ leaseTime: '10s' });
    const answer = latch();
    bob.backend.disturb(answerAfter(answer.promise), 'accept');
    bob.backend.disturb(answerLost, 'renew');
    await held.release();
    const lease = await runtime.until(served);
    const extended = errorOf(lease.extend('2s'));
    answer.open();
    expect((await runtime.until(extended))?.message).toContain('could not be extended');
    await runtime.advance(2_000);
    expect(lease.held).toBe(false);
    const other = await runtime.until(ann.locks.acquire('order'));
    await errorOf(lease.release());
    expect(other.held).toBe(true);
    await other.release();
  });

  it('is released after a detachment that failed, also if that was possible only after its claim', async () => {
    const { bob, runtime, held, served } = await waiting();
    bob.backend.disturb(answerAfter(latch().promise), 'accept');
    await held.release();
    const lease = await runtime.until(served);
    bob.backend.disturb(refused, 'transfer');
    bob.backend.disturb(refused, 'release');
    expect(await errorOf(runtime.until(lease.detach({ for: '1m' })))).toBeInstanceOf(LockLostError);
    await runtime.advance(2 * CLAIM);
    expect((await bob.locks.inspect('order')).locked).toBe(true);
    bob.backend.heal();
    await runtime.advance(CLAIM);
    expect((await bob.locks.inspect('order')).locked).toBe(false);
  });

  it('is lost when the backend says that it is gone', async () => {
    const { bob, runtime, held, served } = await waiting();
    const answer = latch();
    bob.backend.disturb(async (execute) => {
      const executed = execute(); // the request has left the process
      await answer.promise;
      await executed;
      return false;
    }, 'accept');
    await held.release();
    const lease = await runtime.until(served);
    const { signal } = lease;
    expect(lease.held).toBe(true);
    answer.open();
    await runtime.settle();
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect((await errorOf(lease.release()))?.message).toContain('it no longer existed at renewal');
  });

  it('is requested again if there is no answer, and lost when its claim ends', async () => {
    const { bob, runtime, held, served } = await waiting();
    let accepted = 0;
    bob.backend.disturb(async (execute) => {
      accepted++;
      return answerLost(execute, undefined);
    }, 'accept');
    // The message is sent at once, so that the caller is served.
    await held.release();
    const lease = await runtime.until(served);
    const { signal } = lease;
    expect(lease.held).toBe(true);
    await runtime.advance(CLAIM);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(accepted).toBeGreaterThan(0);
    await errorOf(lease.release());
  });

  it('is kept by a body that blocks the event loop for longer than the claim', async () => {
    const { bob, runtime, held, served } = await waiting();
    const answer = latch();
    bob.backend.disturb(answerAfter(answer.promise), 'accept');
    await held.release();
    const lease = await runtime.until(served);
    const { signal } = lease;
    runtime.block(CLAIM + 500);
    expect(() => lease.assertHeld()).toThrow('the body has blocked the event loop since it began');
    answer.open(); // it has arrived meanwhile
    await runtime.advance(10);
    expect(signal.aborted).toBe(false);
    lease.assertHeld();
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('is released like any other by such a body', async () => {
    const { bob, runtime, held, served } = await waiting();
    bob.backend.disturb(answerAfter(latch().promise), 'accept');
    await held.release();
    const lease = await runtime.until(served);
    const { signal } = lease;
    runtime.block(CLAIM + 500);
    await runtime.until(lease.release());
    expect(signal.aborted).toBe(false);
    expect((await bob.locks.inspect('order')).locked).toBe(false);
  });

  it('serves nobody before the request for the full lease has left the process', async () => {
    const { bob, runtime, held, served } = await waiting();
    bob.backend.disturb(refused, 'accept');
    let isServed = false;
    void served.then(() => {
      isServed = true;
    });
    await held.release();
    await runtime.settle();
    expect(isServed).toBe(false);
    bob.backend.heal();
    await (await runtime.until(served)).release();
  });

  it('serves nobody if the event loop was blocked before that for longer than its claim', async () => {
    const { ann, bob, runtime, held, served } = await waiting();
    bob.backend.disturb(async (execute) => {
      bob.backend.heal();
      runtime.block(CLAIM);
      return execute();
    }, 'accept');
    const wasHeld = served.then((lease) => lease.held);
    await held.release();
    expect(await runtime.until(wasHeld)).toBe(true);
    expect(await ann.locks.tryAcquire('order')).toBeNull();
    await (await served).release();
  });

  it('serves its caller when the answer comes, if the event loop was blocked for less than its claim', async () => {
    const { bob, runtime, held, served } = await waiting({ waitTime: 5 });
    const body = bob.locks.withLock('order', ({ held: isHeld }) => isHeld);
    await runtime.advance(5);
    await errorOf(served);
    bob.backend.disturb(async (execute) => {
      runtime.block(CLAIM - 8);
      return execute();
    }, 'accept');
    await held.release();
    expect(await runtime.until(body)).toBe(true);
    expect(bob.backend.commands).toEqual(['accept', 'release']);
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
    expect(runtime.monotonic() - start).toBeLessThan(CLAIM / 2);
    await lease.release();
  });

  it('goes to the next caller if the first one leaves before', async () => {
    const { bob, runtime, held, served } = await waiting({ waitTime: 5 });
    const next = bob.locks.acquire('order');
    const started = latch();
    bob.backend.disturb(async (execute) => {
      await started.promise;
      return execute();
    }, 'accept');
    await held.release();
    await runtime.settle();
    expect(await errorOf(runtime.until(served))).toMatchObject({ name: 'LockBusyError' });
    started.open();
    const lease = await runtime.until(next);
    expect(lease.held).toBe(true);
    await lease.release();
  });

  describe('is confirmed first', () => {
    const isAskedFirst = async (
      prepare: (given: Awaited<ReturnType<typeof waiting>>) => void,
      options?: LockOptions,
    ) => {
      const given = await waiting(options);
      prepare(given);
      const { bob, runtime, held, served } = given;
      await held.release();
      const lease = await runtime.until(served);
      expect(bob.backend.commands[0]).toBe('acquire');
      expect(bob.backend.count('accept')).toBe(0);
      expect(lease.held).toBe(true);
      await lease.release();
    };

    it('if the message has the wrong nonce', () =>
      isAskedFirst(({ bob }) => {
        bob.backend.deliver = changed((grant) => ({ ...grant, nonce: 'forged' }));
      }));

    it('if the message does not say when the lock was granted', () =>
      isAskedFirst(({ bob }) => {
        bob.backend.deliver = changed(() => undefined);
      }));

    it('if its lease is shorter than the claim', () => isAskedFirst(() => {}, { leaseTime: CLAIM - 1 }));

    it('if its caller is the newest one, which learns from the answer how many it has superseded', () =>
      isAskedFirst(() => {}, { newest: true }));

    it('if the message is late', () =>
      isAskedFirst(({ bob, runtime }) => {
        bob.backend.deliver = (wake, listener) => void runtime.timer(CLAIM / 2, () => listener(wake));
      }));

    it('if the machine was suspended since', () =>
      isAskedFirst(({ bob, runtime }) => {
        bob.backend.deliver = (wake, listener) => {
          runtime.suspend(600);
          listener(wake);
        };
      }));

    it('if the wall clock has jumped back since', () =>
      isAskedFirst(({ bob, runtime }) => {
        bob.backend.deliver = (wake, listener) => {
          runtime.setWallClock(-5_000);
          listener(wake);
        };
      }));

    it('if its claim seems to begin in the future', () =>
      isAskedFirst(({ bob }) => {
        bob.backend.deliver = changed((grant) => ({ ...grant, after: grant.after + 20 }));
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
    expect(bob.backend.count('accept')).toBe(1);
    const others = ann.locks.acquire('order');
    await runtime.settle();
    await lease.release();
    const leases = Promise.all([again, others].map(async (granted) => (await granted).release()));
    hear(messages[0]);
    await runtime.until(leases);
  });

  it('is granted to nobody who does not wait any more', async () => {
    const { ann, bob, runtime, held, served } = await waiting({ waitTime: 5 });
    let hear = () => {};
    bob.backend.deliver = (wake, listener) => {
      hear = () => listener(wake);
    };
    await held.release();
    expect(await errorOf(runtime.until(served))).toMatchObject({ name: 'LockBusyError' });
    hear();
    await runtime.settle();
    expect(bob.backend.count('accept')).toBe(0);
    await (await runtime.until(ann.locks.acquire('order'))).release();
  });

  it('is lost by a forced release before the answer', async () => {
    const { ann, bob, runtime, held, served } = await waiting();
    const answer = latch();
    bob.backend.disturb(answerAfter(answer.promise), 'accept');
    await held.release();
    const lease = await runtime.until(served);
    await bob.locks.forceRelease('order');
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    answer.open();
    await runtime.settle();
    expect(lease.held).toBe(false);
    await errorOf(lease.release());
    await (await runtime.until(ann.locks.acquire('order'))).release();
  });

  it('ends with its body, without a renewal of what was released', async () => {
    const { ann, bob, runtime, held, served } = await waiting();
    const answer = latch();
    bob.backend.disturb(answerAfter(answer.promise), 'accept');
    await held.release();
    await (await runtime.until(served)).release();
    answer.open();
    await runtime.advance(60_000);
    expect(bob.backend.count('accept')).toBe(1);
    expect(bob.backend.count('renew')).toBe(0);
    await (await runtime.until(ann.locks.acquire('order'))).release();
  });

  it('can be handed on within the process, extended, and detached', async () => {
    const { bob, runtime, held, served } = await waiting();
    const next = bob.locks.acquire('order');
    await held.release();
    const lease = await runtime.until(served);
    await runtime.settle();
    await lease.extend('2m');
    expect(lease.remainingTime()).toBeGreaterThan(100_000);
    await runtime.until(lease.release());
    const second = await runtime.until(next);
    const ticket = await runtime.until(second.detach({ for: '1m' }));
    const adopted = await bob.locks.adopt(ticket);
    await adopted.release();
  });
});
