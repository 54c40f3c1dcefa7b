import type { AcquireRequest, Busy, LockBackend, OwnerRef, Wake } from '../../../lib/backends/lock-backend.js';
import { Attempt } from '../../../lib/engine/ask/attempt.js';
import { LockBusyError } from '../../../lib/engine/errors.js';
import { leftovers, ms, NOTHING, openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, answerLost } from '../../support/watched/watched-backend.js';
import { giveBack } from '../hold/give-back.js';
import { fairScene, KEY, type TestWaiter, WAITER_TIMEOUT } from './scripted-scene.js';

describe('a waiter for a fair lock', () => {
  const world = openVirtualWorld();

  /**
   * Lets no message reach this process. The returned function notifies its listeners as a subscriber does that has
   * connected again.
   */
  function deafen({ backend }: VirtualProcess): () => void {
    const listeners: ((wake: Wake) => void)[] = [];
    const subscribe: LockBackend['subscribe'] = backend.subscribe.bind(backend);
    backend.subscribe = (key, type, clientId, listener) => {
      listeners.push(listener);
      return subscribe(key, type, clientId, () => {});
    };
    return () => {
      for (const listener of listeners) listener({ kind: 'resync' });
    };
  }

  it('asks at once when its subscription is back, since the message of a release may have been lost', async () => {
    const [holder, waiter] = [await world.process(), await world.process()];
    const resync = deafen(waiter);
    const held = await holder.locks.acquire('order', { type: 'fair' });
    const waiting = waiter.locks.acquire('order', { type: 'fair', waitTime: '1m' });
    await world.runtime.settle();
    await held.release();
    await world.runtime.settle();
    const asked = waiter.backend.count('acquire');
    resync();
    await world.runtime.settle();
    expect(waiter.backend.count('acquire')).toBe(asked + 1);
    const lease = await waiting;
    expect(world.runtime.monotonic()).toBe(0);
    await lease.release();
  });

  it('asks at once when it is told to while its request is answered that the lock is busy', async () => {
    const [holder, { locks, backend, runtime }] = [await world.process(), await world.process()];
    const held = await holder.locks.acquire('order', { type: 'fair' });
    const leaving = new AbortController();
    const first = errorOf(locks.acquire('order', { type: 'fair', signal: leaving.signal }));
    await runtime.settle();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const second = locks.acquire('order', { type: 'fair' });
    await runtime.settle();
    leaving.abort();
    await first;
    await held.release();
    await runtime.settle();
    answer.open();
    const lease = await runtime.until(second, 1_000);
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('asks no more until it is told to when the end of the lease is unknown', async () => {
    const { locks, backend, runtime } = await world.process();
    backend.disturb(async (): Promise<Busy> => ({ acquired: false, remaining: -1, holder: 'other:1' }), 'acquire');
    backend.disturb(async (_, places) => (places as OwnerRef[]).map(() => true), 'refreshWaiters');
    const leaving = new AbortController();
    const waiting = errorOf(locks.acquire('order', { type: 'fair', signal: leaving.signal }));
    await runtime.settle();
    const asked = backend.count('acquire');
    await runtime.advance(60_000);
    expect(backend.count('acquire')).toBe(asked);
    leaving.abort();
    await waiting;
  });

  it('gives the lock back that it is granted after it has left', async () => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const leaving = new AbortController();
    const waiting = errorOf(locks.acquire('order', { type: 'fair', signal: leaving.signal }));
    await runtime.settle();
    leaving.abort();
    await waiting;
    answer.open();
    await runtime.settle();
    expect(await locks.isLocked('order')).toBe(false);
    await runtime.advance(1_500); // the watchdog finds nothing to do
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it.each([
    ['asks as another owner', 'order', 2],
    ['asks as the same owner', 'stock', 1],
  ] as const)(
    '%s after an unanswered request and a forced release of the lock %s by its process',
    async (_, name, expected) => {
      const { locks, backend, runtime } = await world.process();
      const owners: string[] = [];
      backend.disturb((execute, request) => {
        owners.push((request as AcquireRequest).owner);
        return owners.length === 1 ? answerLost(execute, request) : execute();
      }, 'acquire');
      const waiting = locks.acquire('order', { type: 'fair' });
      await runtime.settle();
      await locks.forceRelease(name);
      const lease = await runtime.until(waiting);
      expect(owners).toHaveLength(2);
      expect(new Set(owners).size).toBe(expected);
      await lease.release();
    },
  );
});

describe('the queue of a fair lock', () => {
  /** A caller whose request has not been answered yet. */
  const asking = () => {
    const scene = fairScene();
    return { ...scene, waiter: scene.arrive() };
  };
  /** A caller that has found the lock busy, and listens. */
  const waiting = async (settings?: Parameters<typeof fairScene>[0]) => {
    const scene = fairScene(settings);
    const waiter = scene.arrive();
    await scene.backend.last('acquire').busy();
    return { ...scene, waiter };
  };
  const message = ({ owner }: TestWaiter): Wake => ({ kind: 'message', owner });

  describe('asks the backend', () => {
    it('for each caller at once, without tokens for others, and with a position unless it tries once', async () => {
      const { backend, arrive, trier } = fairScene();
      const [waiter, once] = [arrive(), trier()];
      expect(backend.sent('acquire').map(({ request }) => request)).toEqual([
        expect.objectContaining({ key: KEY, type: 'fair', owner: waiter.owner, waiterTimeout: WAITER_TIMEOUT }),
        expect.objectContaining({ key: KEY, type: 'fair', owner: once.owner, waiterTimeout: 0 }),
      ]);
      expect(backend.sent('acquire').map(({ request }) => request.reserve)).toEqual([0, 0]);
    });

    it('once more for all callers when it listens, and only for the first one when it listens to another type', async () => {
      const { backend, arrive } = await waiting();
      arrive();
      await backend.last('acquire').busy();
      expect(backend.heard.map(({ type }) => type)).toEqual(['fair', 'reentrant']);
      const [own, other] = backend.heard;
      await other.confirm();
      expect(backend.count('acquire')).toBe(3);
      expect(backend.last('acquire').request.owner).toBe(backend.sent('acquire')[0].request.owner);
      await backend.last('acquire').busy();
      await own.confirm();
      expect(backend.count('acquire')).toBe(5);
    });

    it('for the caller that a message names, for all when none is named, and for nobody when it is unknown', async () => {
      const { backend, waiter, arrive } = await waiting();
      const next = arrive();
      await backend.last('acquire').busy();
      await backend.tell('fair', { kind: 'message', owner: 'other:7' });
      expect(backend.count('acquire')).toBe(2);
      await backend.tell('fair', message(next));
      expect(backend.owners('acquire').slice(2)).toEqual([next.owner]);
      await backend.last('acquire').busy();
      await backend.tell('fair');
      expect(backend.owners('acquire').slice(3)).toEqual([waiter.owner, next.owner]);
      for (const sent of backend.sent('acquire').slice(3)) await sent.busy();
      await backend.tell('fair', { kind: 'resync' });
      expect(backend.owners('acquire').slice(5)).toEqual([waiter.owner, next.owner]);
    });

    it('for the first caller only when a holder of another type has released the lock', async () => {
      const { backend, waiter, arrive } = await waiting();
      arrive();
      await backend.last('acquire').busy({ heldAs: 'write' });
      await backend.last('acquire').busy({ heldAs: 'write' });
      expect(backend.types).toEqual(['fair', 'reentrant', 'write']);
      for (const type of ['reentrant', 'write'] as const) {
        const before = backend.count('acquire');
        await backend.tell(type);
        expect(backend.owners('acquire').slice(before)).toEqual([waiter.owner]);
        await backend.last('acquire').busy({ heldAs: type });
      }
      expect(backend.heard).toHaveLength(3);
    });

    it('again after a busy answer if a message came meanwhile, but only once', async () => {
      const { backend, waiter } = await waiting();
      await backend.tell('fair', message(waiter));
      await backend.tell('fair', message(waiter));
      expect(backend.count('acquire')).toBe(2);
      await backend.last('acquire').busy();
      expect(backend.count('acquire')).toBe(3);
      await backend.last('acquire').busy();
      expect(backend.count('acquire')).toBe(3);
    });

    it('for the first caller when the lease of the holder has ended, as the latest answer says', async () => {
      const { backend, runtime, waiter, arrive } = asking();
      const first = waiter;
      await backend.last('acquire').busy({ remaining: 100 });
      arrive();
      await backend.last('acquire').busy({ remaining: 500 });
      await runtime.advance(500);
      expect(backend.count('acquire')).toBe(2);
      await runtime.advance(2);
      expect(backend.owners('acquire').slice(2)).toEqual([first.owner]);
    });

    it('right after a lease that ends now', async () => {
      const { backend, runtime } = asking();
      await backend.last('acquire').busy({ remaining: 0 });
      await runtime.advance(2);
      expect(backend.count('acquire')).toBe(2);
    });

    it('no more at the end of a lease once its last caller has the lock', async () => {
      const { backend, runtime, waiter } = asking();
      await backend.last('acquire').busy({ remaining: 5_000 });
      await backend.tell('fair', message(waiter));
      await backend.last('acquire').grant();
      expect(runtime.keepAliveTimers).toBe(0);
      await runtime.advance(WAITER_TIMEOUT);
      expect(backend.count('refreshWaiters')).toBe(0);
    });

    it('whether it answers while anybody waits', async () => {
      const { backend, runtime, arrive } = fairScene({ health: true });
      arrive();
      await runtime.advance(3_000);
      expect(backend.pings).toBe(1);
    });

    it('in a timer that keeps the process alive, for as long as anybody waits', async () => {
      const { backend, runtime, guest } = fairScene();
      const [first, second] = [guest(), guest()];
      for (const sent of backend.sent('acquire')) await sent.busy({ remaining: 5_000 });
      expect(runtime.keepAliveTimers).toBe(1);
      first.leave();
      expect(runtime.keepAliveTimers).toBe(1);
      second.leave();
      await runtime.settle();
      expect(runtime.timers).toBe(0);
    });
  });

  describe('after a request without an answer', () => {
    it('asks again under the same owner after a pause, which grows until there is an answer', async () => {
      const { backend, runtime, waiter } = asking();
      /** @returns after how many milliseconds the caller asks again */
      const pause = async () => {
        const before = backend.count('acquire');
        await backend.last('acquire').fail();
        expect(runtime.keepAliveTimers).toBe(1);
        const start = runtime.monotonic();
        while (backend.count('acquire') === before) await runtime.advance(1);
        return runtime.monotonic() - start;
      };
      const pauses = [await pause(), await pause(), await pause(), await pause()];
      expect(pauses[0]).toBeLessThanOrEqual(50);
      expect(pauses[3]).toBeGreaterThanOrEqual(200);
      await backend.last('acquire').busy();
      await backend.tell('fair', message(waiter));
      expect(await pause()).toBeLessThanOrEqual(50);
      expect(new Set(backend.owners('acquire'))).toEqual(new Set([waiter.owner]));
    });

    it('reports the first failure of an outage that nobody else reports', async () => {
      const { backend, runtime, services, waiter, arrive } = asking();
      const errors: string[] = [];
      services.events.on('error', ({ message }) => errors.push(message));
      arrive();
      for (const sent of backend.sent('acquire')) await sent.fail();
      expect(errors).toEqual(["The lock 'order' could not be acquired: no connection"]);
      await runtime.advance(100);
      for (const sent of backend.sent('acquire').slice(2)) await sent.busy();
      await backend.tell('fair', message(waiter));
      await backend.last('acquire').fail();
      expect(errors).toHaveLength(2);
    });

    it('asks once at a time when a message comes before the pause has ended', async () => {
      const { backend, runtime, waiter } = await waiting();
      await backend.tell('fair', message(waiter));
      await backend.last('acquire').fail();
      await backend.tell('fair', message(waiter));
      expect(backend.count('acquire')).toBe(3);
      await runtime.advance(2_000);
      expect(backend.count('acquire')).toBe(3);
    });

    it('pauses only once when a message comes during the pause, and the next request fails, too', async () => {
      const { backend, runtime, waiter } = await waiting();
      await backend.tell('fair', message(waiter));
      await backend.last('acquire').fail();
      await backend.tell('fair', message(waiter));
      await backend.last('acquire').fail();
      await runtime.advance(49); // the first pause, of at most 50 ms, would have ended, but not the second one
      expect(backend.count('acquire')).toBe(3);
      await runtime.advance(52);
      expect(backend.count('acquire')).toBe(4);
    });

    it('has no timer left when the caller leaves', async () => {
      const { backend, runtime, ends, guest } = fairScene();
      const { leave } = guest();
      await backend.last('acquire').fail();
      leave();
      await runtime.settle();
      expect(runtime.keepAliveTimers).toBe(0);
      expect(ends.count).toBe(1);
    });

    it.each([
      ['the lock cannot be used', 'key', 'LockKeyError'],
      ['the backend denies it', 'denied', 'LockUnavailableError'],
      ['the client has ended', 'closed', 'LockUnavailableError'],
    ] as const)('refuses a caller that waits when another request would fail, too: %s', async (_, kind, expected) => {
      const { backend, runtime, waiter } = asking();
      await backend.last('acquire').fail('refused', kind);
      expect(waiter.outcome).toBe(expected);
      await runtime.advance(5_000);
      expect(backend.count('acquire')).toBe(1);
    });

    it('refuses a caller that tries once, which leaves no position', async () => {
      const { backend, runtime, ends, trier } = fairScene();
      const waiter = trier();
      await backend.last('acquire').fail();
      expect(waiter.outcome).toBe('LockUnavailableError');
      await runtime.advance(5_000);
      expect([backend.count('acquire'), backend.count('removeWaiter'), ends.count > 0]).toEqual([1, 0, true]);
    });

    it('calls the lock busy again once it has been answered', async () => {
      const { backend, runtime, arrive } = fairScene();
      const waiter = arrive({ waitTime: ms(1_000) });
      await backend.last('acquire').fail();
      await runtime.advance(50);
      await backend.last('acquire').busy();
      await runtime.advance(1_000);
      expect(waiter.outcome).toBe('LockBusyError');
    });

    it('does not call the backend unavailable because of a failure before a forced release', async () => {
      const { backend, services, runtime, arrive } = fairScene();
      const waiter = arrive({ waitTime: ms(1_000) });
      await backend.last('acquire').fail();
      await runtime.advance(50);
      const asked = backend.last('acquire');
      services.pendingAttempts.interfere({ key: KEY, owners: [waiter.owner] }, 'removed');
      await asked.grant();
      expect(backend.count('acquire')).toBe(3);
      await runtime.advance(1_000);
      expect(waiter.outcome).toBe('LockBusyError');
    });
  });

  describe('gives a caller another owner, and releases the one before,', () => {
    it('when its process has released it by force while the request was granted', async () => {
      const { backend, services, waiter } = asking();
      const { owner } = waiter;
      services.pendingAttempts.interfere({ key: KEY, owners: [owner] }, 'removed');
      await backend.last('acquire').grant();
      expect(backend.owners('release')).toEqual([owner]);
      expect(backend.owners('removeWaiter')).toEqual([owner]);
      expect(backend.owners('acquire')).toEqual([owner, waiter.owner]);
      expect(waiter.owner).not.toBe(owner);
      await backend.last('acquire').busy();
      await backend.tell('fair', { kind: 'message', owner });
      expect(backend.count('acquire')).toBe(2);
      await backend.tell('fair', message(waiter));
      expect(backend.owners('acquire').slice(2)).toEqual([waiter.owner]);
    });

    it.each([
      ['its process has released it by force while the request failed', 'unknown', false, true],
      ['the backend has released it already', 'refused', true, false],
    ] as const)('when %s', async (_, outcome, spent, removed) => {
      const { backend, services, runtime, waiter } = asking();
      const { owner } = waiter;
      if (removed) services.pendingAttempts.interfere({ key: KEY, owners: [owner] }, 'removed');
      await backend.last('acquire').fail(outcome, 'unavailable', { spent });
      expect(backend.owners('release')).toEqual([owner]);
      expect(waiter.owner).not.toBe(owner);
      await runtime.advance(50);
      expect(backend.owners('acquire')).toEqual([owner, waiter.owner]);
    });

    it('when its process has released it by force while a later request was refused, and gives up its position', async () => {
      const { backend, services, waiter } = await waiting();
      const { owner } = waiter;
      await backend.tell('fair', message(waiter));
      services.pendingAttempts.interfere({ key: KEY, owners: [owner] }, 'removed');
      await backend.last('acquire').fail('refused');
      expect(waiter.owner).not.toBe(owner);
      expect([backend.owners('release'), backend.owners('removeWaiter')]).toEqual([[owner], [owner]]);
    });

    it('when its process has released it by force while a later request found the lock busy', async () => {
      const { backend, services, runtime, waiter } = asking();
      const { owner } = waiter;
      await backend.last('acquire').fail('unknown');
      await runtime.advance(50);
      services.pendingAttempts.interfere({ key: KEY, owners: [owner] }, 'removed');
      await backend.last('acquire').busy();
      expect(waiter.owner).not.toBe(owner);
      expect(backend.owners('acquire')).toEqual([owner, owner, waiter.owner]);
      expect(backend.owners('release')).toEqual([owner]);
    });

    it('but does not ask again if it has left meanwhile', async () => {
      const { backend, services, ends, guest } = fairScene();
      const { waiter, leave } = guest();
      const { owner } = waiter;
      leave();
      services.pendingAttempts.interfere({ key: KEY, owners: [owner] }, 'removed');
      await backend.last('acquire').grant();
      expect(backend.count('acquire')).toBe(1);
      expect(backend.owners('release')).toEqual([owner]);
      expect(ends.count).toBe(1);
    });

    it('when its lock was released by force and an earlier request may have taken it, but not otherwise', async () => {
      const { backend, queue, runtime, waiter, arrive } = asking();
      const certain = arrive();
      const pending = arrive();
      const owners = [waiter, certain, pending].map(({ owner }) => owner);
      const [first, second, third] = backend.sent('acquire');
      await first.fail('unknown');
      await second.busy();
      await third.fail('unknown');
      await backend.tell('fair', message(pending));
      queue.removed(['me:55']);
      expect(waiter.owner).toBe(owners[0]);
      queue.removed(owners);
      await runtime.settle();
      expect(waiter.owner).not.toBe(owners[0]);
      expect([certain.owner, pending.owner]).toEqual(owners.slice(1));
      expect(backend.owners('release')).toEqual([owners[0]]);
      queue.removed([waiter.owner]);
      expect(backend.count('release')).toBe(1);
    });
  });

  describe('when a caller leaves', () => {
    it('gives up its position at once, and ends', async () => {
      const { backend, runtime, ends, guest } = fairScene();
      const { waiter, leave } = guest();
      await backend.last('acquire').busy();
      leave();
      await runtime.settle();
      expect(backend.owners('removeWaiter')).toEqual([waiter.owner]);
      expect(backend.count('release')).toBe(0);
      expect(ends.count).toBe(1);
      expect(backend.heard.map(({ closed }) => closed)).toEqual([1, 1]);
    });

    it.each(['busy', 'fail'] as const)('gives up its position when its request is answered: %s', async (answer) => {
      const { backend, runtime, ends, guest } = fairScene();
      const { waiter, leave } = guest();
      leave();
      await runtime.settle();
      expect([backend.count('removeWaiter'), ends.count]).toEqual([0, 0]);
      await backend.last('acquire')[answer]();
      expect(backend.owners('removeWaiter')).toEqual([waiter.owner]);
      expect(ends.count).toBe(1);
      await runtime.advance(5_000);
      expect(backend.count('acquire')).toBe(1);
    });

    it('releases what an earlier request may have taken', async () => {
      const { backend, runtime, guest } = fairScene();
      const { waiter, leave } = guest();
      await backend.last('acquire').fail('unknown');
      leave();
      await runtime.settle();
      expect(backend.owners('release')).toEqual([waiter.owner]);
      expect(backend.owners('removeWaiter')).toEqual([waiter.owner, waiter.owner]);
    });

    it('that tried once, gives up no position', async () => {
      const { backend, runtime, guest } = fairScene();
      const { leave } = guest({ waitTime: ms(0) });
      leave();
      await backend.last('acquire').busy();
      await runtime.settle();
      expect(backend.count('removeWaiter')).toBe(0);
    });

    it('keeps its timer and its heartbeat for the others', async () => {
      const { backend, runtime, arrive, guest } = fairScene();
      const first = guest();
      const second = arrive();
      for (const sent of backend.sent('acquire')) await sent.busy({ remaining: 3_000 });
      first.leave();
      await runtime.advance(WAITER_TIMEOUT / 3);
      expect(backend.last('refreshWaiters').request).toEqual([{ key: KEY, type: 'fair', owner: second.owner }]);
      await runtime.advance(1_002);
      expect(backend.owners('acquire').slice(2)).toEqual([second.owner]);
    });

    it('closes its subscriptions once if a last request of its last caller is refused for good', async () => {
      const { backend, waiter } = await waiting();
      await backend.tell('fair', message(waiter));
      await backend.last('acquire').fail('refused', 'key');
      expect(backend.heard.map(({ closed }) => closed)).toEqual([1, 1]);
    });
  });

  describe('keeps the positions of its callers', () => {
    it('with one request in each third of the time, which names those that wait', async () => {
      const { backend, runtime, waiter, arrive, trier } = await waiting();
      const next = arrive();
      await backend.last('acquire').busy();
      trier();
      await runtime.advance(WAITER_TIMEOUT);
      expect(backend.count('refreshWaiters')).toBe(3);
      for (const { request } of backend.sent('refreshWaiters'))
        expect(request).toEqual([waiter, next].map(({ owner }) => ({ key: KEY, type: 'fair', owner })));
    });

    it('and asks at once for one that has lost its position', async () => {
      const { backend, runtime, waiter } = await waiting();
      backend.hold('refreshWaiters');
      await runtime.advance(WAITER_TIMEOUT / 3);
      await backend.last('refreshWaiters').answer([false]);
      expect(backend.owners('acquire')).toEqual([waiter.owner, waiter.owner]);
    });
  });

  describe('with a holder of this process', () => {
    const held = async () => {
      const scene = fairScene();
      const waiter = scene.arrive();
      await scene.backend.last('acquire').grant();
      return { ...scene, held: waiter.held as NonNullable<TestWaiter['held']> };
    };

    it('ends when the release is answered, and not before', async () => {
      const { backend, queue, runtime, ends, held: lock, guest } = await held();
      backend.hold('release');
      void giveBack(queue, lock);
      const { leave } = guest();
      leave();
      await backend.last('acquire').busy();
      await runtime.settle();
      expect([queue.isAsking, ends.count]).toEqual([true, 0]);
      await backend.last('release').answer({ released: true, listeners: 0, published: false, resent: false });
      expect([queue.isAsking, ends.count]).toEqual([false, 1]);
    });

    it('ends when the lock is left to lapse, and gives it back to the backend only', async () => {
      const { backend, queue, ends, held: lock } = await held();
      lock.abandon(new Error('too long'));
      expect(ends.count).toBe(1);
      expect(giveBack(queue, lock)).toBe('released');
      expect(backend.owners('release')).toEqual([lock.owner]);
    });

    it('asks for the first caller when the lock is lost', async () => {
      const { backend, queue, runtime, held: lock, arrive } = await held();
      const [first, second] = [arrive(), arrive()];
      for (const sent of backend.sent('acquire').slice(1)) await sent.busy();
      queue.lost(lock);
      await runtime.settle();
      expect(backend.owners('acquire').slice(3)).toEqual([first.owner]);
      expect(backend.owners('release')).toEqual([lock.owner]);
      expect(second.outcome).toBeUndefined();
    });

    it('names it to callers that leave, although an earlier request had failed', async () => {
      const { backend, queue, services, runtime, caller, arrive } = fairScene();
      const waiter = arrive({ waitTime: ms(1_000) });
      await backend.last('acquire').fail();
      expect(queue.claim()).toBe(true);
      const { terms } = caller();
      const attempt = new Attempt(services, KEY, 'me:77', terms);
      const lock = queue.fulfil(attempt, terms, 12);
      expect([lock.token, lock.block, queue.isAsking]).toEqual([12, undefined, false]);
      await runtime.advance(1_000);
      expect(waiter.error).toBeInstanceOf(LockBusyError);
      expect(waiter.error?.message).toContain('held by me:77 (this process)');
    });

    it('no longer names the holder of another process that its callers had waited for', async () => {
      const { backend, queue, runtime, waiter, arrive } = await waiting();
      const late = arrive({ waitTime: ms(1_000) });
      await backend.last('acquire').busy();
      await backend.confirm();
      const [again, last] = backend.sent('acquire').slice(2);
      await last.busy();
      await again.grant();
      expect(waiter.outcome).toBe('held');
      await giveBack(queue, waiter.held as NonNullable<TestWaiter['held']>);
      await runtime.advance(1_001);
      expect(late.error).toMatchObject({ name: 'LockBusyError', holder: undefined });
    });

    it('gives the late copies of unanswered requests of its owner to the lock', async () => {
      const { backend, runtime, waiter } = asking();
      await backend.last('acquire').fail('unknown', 'unavailable', { validUntil: 5_000 });
      await runtime.advance(50);
      await backend.last('acquire').grant();
      expect(waiter.held?.lateCopiesUntil).toBe(5_000);
    });
  });

  it('is kept for as long as a caller of several names has claimed it', async () => {
    const { queue, runtime, ends, backend, guest } = fairScene();
    expect([queue.claim(), queue.claim()]).toEqual([true, true]);
    const { leave } = guest();
    leave();
    await backend.last('acquire').busy();
    queue.unclaim();
    await runtime.settle();
    expect([queue.isAsking, ends.count]).toEqual([true, 0]);
    queue.unclaim();
    expect([queue.isAsking, ends.count]).toEqual([false, 1]);
  });

  it('ends when a caller that tries once leaves while it waits for a release of its process in the background', async () => {
    const { backend, services, runtime, ends, guest } = fairScene();
    backend.hold('release');
    services.backgroundReleases.release({ key: KEY, type: 'fair', owner: 'me:99', leaseTime: 10_000 });
    const { leave } = guest({ waitTime: ms(0) });
    await backend.last('acquire').busy({ holder: 'me:99' });
    leave();
    await runtime.settle();
    expect(ends.count).toBe(0);
    await backend.last('release').answer({ released: true, listeners: 0, published: false, resent: false });
    expect([backend.count('acquire'), ends.count]).toEqual([1, 1]);
  });

  it('asks for the names of the holders of callers that give up soon', async () => {
    const looked: string[] = [];
    const { backend, services, arrive } = fairScene();
    services.holders.expect = (owner) => void looked.push(owner);
    arrive();
    await backend.last('acquire').busy({ holder: 'other:1' });
    arrive({ waitTime: ms(500) });
    await backend.last('acquire').busy({ holder: 'other:2' });
    expect(looked).toEqual(['other:1', 'other:2']);
  });
});
