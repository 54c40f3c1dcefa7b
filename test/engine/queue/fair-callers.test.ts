import type { AcquireRequest, Busy, LockBackend, OwnerRef, Wake } from '../../../lib/backends/lock-backend.js';
import { leftovers, ms, NOTHING, openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, answerLost } from '../../support/watched/watched-backend.js';
import { KEY, leaseOf, lockScene, WAITER_TIMEOUT } from './scripted-scene.js';

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

describe('the callers of a fair lock in one process', () => {
  const fairScene = (settings: Parameters<typeof lockScene>[1] = {}) => lockScene('fair', settings);
  /** A caller whose request has not been answered yet. */
  const asking = () => {
    const scene = fairScene();
    return { ...scene, caller: scene.arrive() };
  };
  /** A caller that has found the lock busy, and listens. */
  const waiting = async (settings?: Parameters<typeof fairScene>[0]) => {
    const scene = fairScene(settings);
    const caller = scene.arrive();
    await scene.backend.last('acquire').busy();
    return { ...scene, caller };
  };
  const message = (owner: string): Wake => ({ kind: 'message', owner });

  describe('ask the backend', () => {
    it('for each of them at once, without tokens for others, and with a position unless they try once', () => {
      const { backend, arrive, trier } = fairScene();
      arrive();
      trier();
      expect(backend.sent('acquire').map(({ request }) => request)).toEqual([
        expect.objectContaining({ key: KEY, type: 'fair', owner: 'me:1', waiterTimeout: WAITER_TIMEOUT, reserve: 0 }),
        expect.objectContaining({ key: KEY, type: 'fair', owner: 'me:2', waiterTimeout: 0, reserve: 0 }),
      ]);
    });

    it('once more for all when they listen, and only for the first one when they listen to another type', async () => {
      const { backend, arrive } = await waiting();
      arrive();
      await backend.last('acquire').busy();
      expect(backend.heard.map(({ type }) => type)).toEqual(['fair', 'reentrant']);
      const [own, other] = backend.heard;
      await other.confirm();
      expect(backend.owners('acquire')).toEqual(['me:1', 'me:2', 'me:1']);
      await backend.last('acquire').busy();
      await own.confirm();
      expect(backend.count('acquire')).toBe(5);
    });

    it('for the one that a message names, for all when none is named, and for nobody when it is unknown', async () => {
      const { backend, arrive } = await waiting();
      arrive();
      await backend.last('acquire').busy();
      await backend.tell('fair', message('other:7'));
      expect(backend.count('acquire')).toBe(2);
      await backend.tell('fair', message('me:2'));
      expect(backend.owners('acquire').slice(2)).toEqual(['me:2']);
      await backend.last('acquire').busy();
      await backend.tell('fair');
      expect(backend.owners('acquire').slice(3)).toEqual(['me:1', 'me:2']);
      for (const sent of backend.sent('acquire').slice(3)) await sent.busy();
      await backend.tell('fair', { kind: 'resync' });
      expect(backend.owners('acquire').slice(5)).toEqual(['me:1', 'me:2']);
    });

    it('for the first one only when a holder of another type has released the lock', async () => {
      const { backend, arrive } = await waiting();
      arrive();
      await backend.last('acquire').busy({ heldAs: 'write' });
      await backend.last('acquire').busy({ heldAs: 'write' });
      expect(backend.types).toEqual(['fair', 'reentrant', 'write']);
      for (const type of ['reentrant', 'write'] as const) {
        const before = backend.count('acquire');
        await backend.tell(type);
        expect(backend.owners('acquire').slice(before)).toEqual(['me:1']);
        await backend.last('acquire').busy({ heldAs: type });
      }
      expect(backend.heard).toHaveLength(3);
    });

    it('again after a busy answer if a message came meanwhile, but only once', async () => {
      const { backend } = await waiting();
      await backend.tell('fair', message('me:1'));
      await backend.tell('fair', message('me:1'));
      expect(backend.count('acquire')).toBe(2);
      await backend.last('acquire').busy();
      expect(backend.count('acquire')).toBe(3);
      await backend.last('acquire').busy();
      expect(backend.count('acquire')).toBe(3);
    });

    it('for the first one when the lease of the holder has ended, as the latest answer says', async () => {
      const { backend, runtime, arrive } = asking();
      await backend.last('acquire').busy({ remaining: 100 });
      arrive();
      await backend.last('acquire').busy({ remaining: 500 });
      await runtime.advance(500);
      expect(backend.count('acquire')).toBe(2);
      await runtime.advance(2);
      expect(backend.owners('acquire').slice(2)).toEqual(['me:1']);
    });

    it('right after a lease that ends now', async () => {
      const { backend, runtime } = asking();
      await backend.last('acquire').busy({ remaining: 0 });
      await runtime.advance(2);
      expect(backend.count('acquire')).toBe(2);
    });

    it('no more at the end of a lease once the last of them has the lock', async () => {
      const { backend, runtime } = asking();
      await backend.last('acquire').busy({ remaining: 5_000 });
      await backend.tell('fair', message('me:1'));
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
    it('ask again under the same owner after a pause, which grows until there is an answer', async () => {
      const { backend, runtime } = asking();
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
      await backend.tell('fair', message('me:1'));
      expect(await pause()).toBeLessThanOrEqual(50);
      expect(new Set(backend.owners('acquire'))).toEqual(new Set(['me:1']));
    });

    it('report the first failure of an outage that nobody else reports', async () => {
      const { backend, engine, runtime, arrive } = asking();
      const errors: string[] = [];
      engine.on('error', ({ message }) => errors.push(message));
      arrive();
      for (const sent of backend.sent('acquire')) await sent.fail();
      expect(errors).toEqual(["The lock 'order' could not be acquired: no connection"]);
      await runtime.advance(100);
      for (const sent of backend.sent('acquire').slice(2)) await sent.busy();
      await backend.tell('fair', message('me:1'));
      await backend.last('acquire').fail();
      expect(errors).toHaveLength(2);
    });

    it('ask once at a time when a message comes before the pause has ended', async () => {
      const { backend, runtime } = await waiting();
      await backend.tell('fair', message('me:1'));
      await backend.last('acquire').fail();
      await backend.tell('fair', message('me:1'));
      expect(backend.count('acquire')).toBe(3);
      await runtime.advance(2_000);
      expect(backend.count('acquire')).toBe(3);
    });

    it('pause only once when a message comes during the pause, and the next request fails, too', async () => {
      const { backend, runtime } = await waiting();
      await backend.tell('fair', message('me:1'));
      await backend.last('acquire').fail();
      await backend.tell('fair', message('me:1'));
      await backend.last('acquire').fail();
      await runtime.advance(49); // the first pause, of at most 50 ms, would have ended, but not the second one
      expect(backend.count('acquire')).toBe(3);
      await runtime.advance(52);
      expect(backend.count('acquire')).toBe(4);
    });

    it('have no timer left when they leave', async () => {
      const { backend, runtime, isIdle, guest } = fairScene();
      const { leave } = guest();
      await backend.last('acquire').fail();
      leave();
      await runtime.settle();
      expect([runtime.keepAliveTimers, isIdle()]).toEqual([0, true]);
    });

    it.each([
      ['the lock cannot be used', 'key', 'LockKeyError'],
      ['the backend denies it', 'denied', 'LockUnavailableError'],
      ['the client has ended', 'closed', 'LockUnavailableError'],
    ] as const)('are refused when another request would fail, too: %s', async (_, kind, expected) => {
      const { backend, runtime, caller } = asking();
      await backend.last('acquire').fail('refused', kind);
      expect(caller.outcome).toBe(expected);
      await runtime.advance(5_000);
      expect(backend.count('acquire')).toBe(1);
    });

    it('are refused if they try once, and leave no position', async () => {
      const { backend, runtime, isIdle, trier } = fairScene();
      const caller = trier();
      await backend.last('acquire').fail();
      expect(caller.outcome).toBe('LockUnavailableError');
      await runtime.advance(5_000);
      expect([backend.count('acquire'), backend.count('removeWaiter'), isIdle()]).toEqual([1, 0, true]);
    });

    it('are refused as busy again once there was an answer', async () => {
      const { backend, runtime, arrive } = fairScene();
      const caller = arrive({ waitTime: ms(1_000) });
      await backend.last('acquire').fail();
      await runtime.advance(50);
      await backend.last('acquire').busy();
      await runtime.advance(1_000);
      expect(caller.outcome).toBe('LockBusyError');
    });

    it('are refused as busy also if the answer came with a forced release', async () => {
      const { backend, force, runtime, arrive } = fairScene();
      const caller = arrive({ waitTime: ms(1_000) });
      await backend.last('acquire').fail();
      await runtime.advance(50);
      const asked = backend.last('acquire');
      await force('me:1');
      await asked.grant();
      expect(backend.count('acquire')).toBe(3);
      await runtime.advance(1_000);
      expect(caller.outcome).toBe('LockBusyError');
    });
  });

  describe('ask as another owner, and release the one before,', () => {
    it('when their process has released it by force while the request was granted', async () => {
      const { backend, force } = asking();
      await force('me:1');
      await backend.last('acquire').grant();
      expect([backend.owners('release'), backend.owners('removeWaiter')]).toEqual([['me:1'], ['me:1']]);
      expect(backend.owners('acquire')).toEqual(['me:1', 'me:2']);
      await backend.last('acquire').busy();
      await backend.tell('fair', message('me:1'));
      expect(backend.count('acquire')).toBe(2);
      await backend.tell('fair', message('me:2'));
      expect(backend.owners('acquire')).toEqual(['me:1', 'me:2', 'me:2']);
    });

    it.each([
      ['their process has released it by force while the request failed', 'unknown', false, true],
      ['the backend has released it already', 'refused', true, false],
    ] as const)('when %s', async (_, outcome, spent, removed) => {
      const { backend, force, runtime } = asking();
      if (removed) await force('me:1');
      await backend.last('acquire').fail(outcome, 'unavailable', { spent });
      expect(backend.owners('release')).toEqual(['me:1']);
      await runtime.advance(50);
      expect(backend.owners('acquire')).toEqual(['me:1', 'me:2']);
    });

    it('when their process has released it by force while a later request was refused, and give up the position', async () => {
      const { backend, force, runtime } = await waiting();
      await backend.tell('fair', message('me:1'));
      await force('me:1');
      await backend.last('acquire').fail('refused');
      expect([backend.owners('release'), backend.owners('removeWaiter')]).toEqual([['me:1'], ['me:1']]);
      await runtime.advance(50);
      expect(backend.owners('acquire').at(-1)).toBe('me:2');
    });

    it('when their process has released it by force while a later request found the lock busy', async () => {
      const { backend, force, runtime } = asking();
      await backend.last('acquire').fail('unknown');
      await runtime.advance(50);
      await force('me:1');
      await backend.last('acquire').busy();
      expect(backend.owners('acquire')).toEqual(['me:1', 'me:1', 'me:2']);
      expect(backend.owners('release')).toEqual(['me:1']);
    });

    it('but do not ask again if they have left meanwhile', async () => {
      const { backend, force, isIdle, guest } = fairScene();
      const { leave } = guest();
      leave();
      await force('me:1');
      await backend.last('acquire').grant();
      expect([backend.count('acquire'), backend.owners('release'), isIdle()]).toEqual([1, ['me:1'], true]);
    });

    it('when the lock was released by force and an earlier request may have taken it, but not otherwise', async () => {
      const { backend, force, runtime, arrive } = asking();
      arrive();
      arrive();
      const [first, second, third] = backend.sent('acquire');
      await first.fail('unknown');
      await second.busy();
      await third.fail('unknown');
      await backend.tell('fair', message('me:3'));
      await force('me:55');
      expect(backend.owners('release')).toEqual([]);
      await force('me:1', 'me:2', 'me:3');
      await runtime.settle();
      expect(backend.owners('release')).toEqual(['me:1']);
      await runtime.advance(100);
      expect(backend.owners('acquire').slice(3)).toContain('me:4');
      expect(backend.owners('acquire').slice(3)).not.toContain('me:1');
    });
  });

  describe('when they leave', () => {
    it('give up their position at once', async () => {
      const { backend, runtime, isIdle, guest } = fairScene();
      const { leave } = guest();
      await backend.last('acquire').busy();
      leave();
      await runtime.settle();
      expect([backend.owners('removeWaiter'), backend.count('release'), isIdle()]).toEqual([['me:1'], 0, true]);
      expect(backend.heard.map(({ closed }) => closed)).toEqual([1, 1]);
    });

    it.each(['busy', 'fail'] as const)('give it up when their request is answered: %s', async (answer) => {
      const { backend, runtime, isIdle, guest } = fairScene();
      const { leave } = guest();
      leave();
      await runtime.settle();
      expect([backend.count('removeWaiter'), isIdle()]).toEqual([0, false]);
      await backend.last('acquire')[answer]();
      expect([backend.owners('removeWaiter'), isIdle()]).toEqual([['me:1'], true]);
      await runtime.advance(5_000);
      expect(backend.count('acquire')).toBe(1);
    });

    it('release what an earlier request may have taken', async () => {
      const { backend, runtime, guest } = fairScene();
      const { leave } = guest();
      await backend.last('acquire').fail('unknown');
      leave();
      await runtime.settle();
      expect([backend.owners('release'), backend.owners('removeWaiter')]).toEqual([['me:1'], ['me:1', 'me:1']]);
    });

    it('give up no position if they have tried once', async () => {
      const { backend, runtime, guest } = fairScene();
      const { leave } = guest({ waitTime: ms(0) });
      leave();
      await backend.last('acquire').busy();
      await runtime.settle();
      expect(backend.count('removeWaiter')).toBe(0);
    });

    it('leave the timer and the heartbeat to the others', async () => {
      const { backend, runtime, arrive, guest } = fairScene();
      const first = guest();
      arrive();
      for (const sent of backend.sent('acquire')) await sent.busy({ remaining: 3_000 });
      first.leave();
      await runtime.advance(WAITER_TIMEOUT / 3);
      expect(backend.last('refreshWaiters').request).toEqual([{ key: KEY, type: 'fair', owner: 'me:2' }]);
      await runtime.advance(1_002);
      expect(backend.owners('acquire').slice(2)).toEqual(['me:2']);
    });

    it('close the subscriptions once if the last request of the last one is refused for good', async () => {
      const { backend } = await waiting();
      await backend.tell('fair', message('me:1'));
      await backend.last('acquire').fail('refused', 'key');
      expect(backend.heard.map(({ closed }) => closed)).toEqual([1, 1]);
    });
  });

  describe('keep their positions', () => {
    it('with one request in each third of the time, which names those that wait', async () => {
      const { backend, runtime, arrive, trier } = await waiting();
      arrive();
      await backend.last('acquire').busy();
      trier();
      await runtime.advance(WAITER_TIMEOUT);
      expect(backend.count('refreshWaiters')).toBe(3);
      for (const { request } of backend.sent('refreshWaiters'))
        expect(request).toEqual(['me:1', 'me:2'].map((owner) => ({ key: KEY, type: 'fair', owner })));
    });

    it('and ask at once for one that has lost its position', async () => {
      const { backend, runtime } = await waiting();
      backend.hold('refreshWaiters');
      await runtime.advance(WAITER_TIMEOUT / 3);
      await backend.last('refreshWaiters').answer([false]);
      expect(backend.owners('acquire')).toEqual(['me:1', 'me:1']);
    });
  });

  describe('with a holder of their process', () => {
    it('leave nothing behind when the release is answered, and not before', async () => {
      const { backend, caller, runtime, isIdle, guest } = asking();
      await backend.last('acquire').grant();
      backend.hold('release');
      void leaseOf(caller).release();
      const { leave } = guest();
      leave();
      await backend.last('acquire').busy();
      await runtime.settle();
      expect(isIdle()).toBe(false);
      await backend.last('release').answer({ released: true, listeners: 0, published: false, resent: false });
      expect(isIdle()).toBe(true);
    });

    it('ask for the first one when the lock is lost', async () => {
      const { backend, runtime, arrive } = fairScene();
      arrive({ leaseTime: ms(1_000), fixed: true });
      await backend.last('acquire').grant();
      const [, second] = [arrive(), arrive()];
      for (const sent of backend.sent('acquire').slice(1)) await sent.busy();
      await runtime.advance(1_000);
      expect(backend.owners('acquire').slice(3)).toEqual(['me:2']);
      expect(second.outcome).toBeUndefined();
    });

    it('no longer name the holder of another process that they had waited for', async () => {
      const { backend, runtime, caller, arrive } = await waiting();
      const late = arrive({ waitTime: ms(1_000) });
      await backend.last('acquire').busy();
      await backend.confirm();
      const [again, last] = backend.sent('acquire').slice(2);
      await last.busy();
      await again.grant();
      await leaseOf(caller).release();
      await runtime.advance(1_001);
      expect(late.error).toMatchObject({ name: 'LockBusyError', holder: undefined });
    });

    it('release the lock again while late copies of its requests may arrive', async () => {
      const { backend, runtime, caller } = asking();
      await backend.last('acquire').fail('unknown', 'unavailable', { validUntil: 5_000 });
      await runtime.advance(50);
      await backend.last('acquire').grant();
      await leaseOf(caller).release();
      await runtime.advance(4_000);
      expect(backend.count('release')).toBeGreaterThan(1);
    });
  });
});
