import '../../contract/support/matchers.js';
import type { Grant, Wake } from '../../../lib/backends/lock-backend.js';
import { validity } from '../../../lib/engine/time/lease-clock.js';
import { ms } from '../../support/lock-world.js';
import { grantTo, inLine, leaseOf, lockScene, type Sent, WAITER_TIMEOUT } from './scripted-scene.js';

const LEASE = 30_000;
const REFRESHED = WAITER_TIMEOUT / 3;
/** How old a request may be if two thirds of the lease are to be left. */
const OLDEST = validity(LEASE) - (LEASE * 2) / 3;

type Scene = Awaited<ReturnType<typeof inLine>>;

/** For how long a lease that was granted is certainly held from now, in milliseconds. */
const left = ({ caller }: Pick<Scene, 'caller'>) => leaseOf(caller).remainingTime();

describe('a caller that a message grants the lock', () => {
  it('has it at once, with the lease in the message, and no command leaves', async () => {
    const { backend, runtime, caller, placed } = await inLine();
    const requests = backend.requests.length;
    await backend.tell('line', grantTo(placed));
    expect(caller.lease).toMatchObject({ owner: placed.request.owner, fencingToken: 5, held: true });
    expect(left({ caller })).toBe(validity(LEASE));
    await runtime.advance(LEASE / 3 - 1_000);
    expect(backend.requests.length).toBe(requests);
    expect(backend.begun).toMatchObject([{ nonce: placed.request.nonce, token: 5 }]);
  });

  it('keeps no place, and refreshes none', async () => {
    const { backend, runtime, placed } = await inLine();
    await backend.tell('line', grantTo(placed));
    await runtime.advance(2 * WAITER_TIMEOUT);
    expect([backend.count('refreshWaiters'), backend.count('removeWaiter')]).toEqual([0, 0]);
  });

  it('has it renewed by the watchdog when a third of the lease is over, like any other', async () => {
    const { backend, runtime, caller, placed } = await inLine();
    const { monotonic } = runtime;
    await runtime.advance(1_500);
    await backend.tell('line', grantTo(placed));
    const begun = monotonic() + left({ caller }) - validity(LEASE);
    while (backend.count('renew') === 0) await runtime.advance(100);
    expect(monotonic() - begun).toBeWithin(LEASE / 3 - 1_000, LEASE / 3 + 1_000);
    expect(backend.last('renew').request).toMatchObject({ owner: placed.request.owner, leaseTime: LEASE });
    expect(leaseOf(caller).held).toBe(true);
  });

  it('loses it when its lease ends, if no renewal is answered', async () => {
    const { backend, runtime, caller, placed } = await inLine();
    backend.hold('renew');
    await runtime.advance(1_500);
    await backend.tell('line', grantTo(placed));
    await runtime.advance(validity(LEASE) - 1_501);
    expect(leaseOf(caller).held).toBe(true);
    await runtime.advance(1);
    expect(leaseOf(caller).held).toBe(false);
  });

  it('has the lease that it wants, if that is shorter than what can be granted', async () => {
    const { backend, caller, placed } = await inLine('reentrant', { leaseTime: ms(600) });
    expect(placed.request.grantLease).toBe(1_000);
    await backend.tell('line', grantTo(placed, { lease: 1_000 }));
    expect(left({ caller })).toBe(validity(600));
  });

  it('lets the next one ask after the release', async () => {
    const { backend, runtime, caller, placed, arrive } = await inLine();
    await backend.tell('line', grantTo(placed));
    await runtime.advance(100); // longer than the lock may stay in the process
    arrive();
    await leaseOf(caller).release();
    expect(backend.owners('acquire').slice(2)).toEqual(['me:2']);
  });

  it('lets the next one inherit it without a command', async () => {
    const { backend, caller, placed, arrive } = await inLine();
    await backend.tell('line', grantTo(placed));
    const next = arrive();
    const requests = backend.requests.length;
    await leaseOf(caller).release();
    expect(next.outcome).toBe('held');
    expect(next.lease).toMatchObject({ owner: placed.request.owner, fencingToken: 6 });
    expect(backend.requests.length).toBe(requests);
  });

  describe('has a lease that counts', () => {
    /** When the lease began, on the monotonic clock. */
    const begunBy = async (scene: Scene, grant: Partial<Grant> = {}, lease = LEASE) => {
      await scene.backend.tell('line', grantTo(scene.placed, grant));
      return scene.runtime.monotonic() + left(scene) - validity(lease);
    };

    it('from before its request was sent, however late the server executed that, or says it did', async () => {
      const scene = lockScene('reentrant', { lines: true });
      const { backend, runtime } = scene;
      const caller = scene.arrive();
      await backend.last('acquire').busy();
      const sent = runtime.monotonic();
      await backend.confirm();
      const placed = backend.last('acquire');
      await runtime.advance(700); // on the way, or tried again
      await placed.busy();
      await runtime.advance(800);
      expect(await begunBy({ ...scene, caller, placed }, { after: 600 })).toBe(sent);
    });

    it('from before the refresh whose nonce is in the message', async () => {
      const scene = await inLine();
      const { backend, runtime } = scene;
      await runtime.advance(REFRESHED);
      const refreshed = runtime.monotonic();
      const [{ nonce }] = backend.last('refreshWaiters').request;
      expect(nonce).not.toBe(scene.placed.request.nonce);
      await runtime.advance(1_000);
      expect(await begunBy(scene, { nonce })).toBe(refreshed);
    });

    it('from before an earlier request, if the message names that one, although the place was refreshed', async () => {
      const scene = await inLine();
      const { backend, runtime } = scene;
      const sent = runtime.monotonic();
      await runtime.advance(2 * REFRESHED);
      expect(backend.count('refreshWaiters')).toBe(2);
      expect(await begunBy(scene)).toBe(sent);
    });

    it('from before a refresh that is unanswered, because the server may have executed it', async () => {
      const scene = await inLine();
      const { backend, runtime } = scene;
      backend.hold('refreshWaiters');
      await runtime.advance(REFRESHED);
      const refreshed = runtime.monotonic();
      const [{ nonce }] = backend.last('refreshWaiters').request;
      await runtime.advance(200);
      expect(await begunBy(scene, { nonce })).toBe(refreshed);
      await backend.last('refreshWaiters').answer([false]); // the grant has ended the place
      expect([scene.caller.outcome, backend.count('acquire')]).toEqual(['held', 2]);
    });

    it('from before its request as long as two thirds are left then', async () => {
      const scene = await inLine();
      const sent = scene.runtime.monotonic();
      scene.runtime.block(OLDEST);
      expect(await begunBy(scene, { after: 5_000 })).toBe(sent);
    });

    it('and otherwise from as much later as the server says, less the margin of clocks', async () => {
      const scene = await inLine();
      const sent = scene.runtime.monotonic();
      scene.runtime.block(OLDEST + 1);
      expect(await begunBy(scene, { after: 5_000 })).toBe(sent + validity(5_000));
    });

    it('so that a short lease is believed long after the last request', async () => {
      const scene = await inLine('reentrant', { leaseTime: ms(1_000) });
      const sent = scene.runtime.monotonic();
      await scene.runtime.advance(1_500);
      expect(await begunBy(scene, { after: 1_450 }, 1_000)).toBe(sent + validity(1_450));
    });
  });

  describe('asks under the same owner', () => {
    /** The message arrives, and the head has to ask. */
    const asks = async ({ backend, placed, caller }: Scene, wake: Wake) => {
      const before = backend.count('acquire');
      await backend.tell('line', wake);
      expect(caller.outcome).toBeUndefined();
      expect(backend.begun).toEqual([]);
      expect(backend.owners('acquire').slice(before)).toEqual([placed.request.owner]);
      const asked = backend.last('acquire');
      await asked.grant({ token: 9 });
      expect(caller.lease).toMatchObject({ owner: placed.request.owner, fencingToken: 9 });
    };

    it('if the nonce is of no request of its own', async () => {
      const scene = await inLine();
      await asks(scene, grantTo(scene.placed, { nonce: 'forged' }));
    });

    it('if the nonce is of a request that is too old to be remembered, but not if it is of a later one', async () => {
      const scene = await inLine();
      const { backend, runtime, placed } = scene;
      await runtime.advance(8 * REFRESHED);
      expect(backend.count('refreshWaiters')).toBe(8);
      await asks(scene, grantTo(placed, { after: 7 * REFRESHED }));

      const later = await inLine();
      await later.runtime.advance(8 * REFRESHED);
      const [{ nonce }] = later.backend.sent('refreshWaiters')[0].request;
      await later.backend.tell('line', grantTo(later.placed, { nonce, after: 6 * REFRESHED }));
      expect(later.caller.outcome).toBe('held');
    });

    it('if the message says no more than that it is granted, as that of an earlier version, or with minReplicas', async () => {
      const scene = await inLine();
      const { grant, ...message } = grantTo(scene.placed);
      await asks(scene, message);
    });

    it.each([LEASE - 1, LEASE + 1])('if the lease is another one than it wants: %i ms', async (lease) => {
      const scene = await inLine();
      await asks(scene, grantTo(scene.placed, { lease }));
    });

    it('if its lease is fixed, because then it would count from the answer', async () => {
      const scene = await inLine('reentrant', { leaseTime: ms(5_000), fixed: true });
      expect(scene.placed.request.grantLease).toBe(5_000);
      await asks(scene, grantTo(scene.placed));
    });

    it('if there is no connection, so that it could neither be renewed nor released', async () => {
      const scene = await inLine();
      scene.backend.connectionError = new Error('closed');
      await asks(scene, grantTo(scene.placed));
    });

    it('if its lease is longer than the watchdog keeps what nobody renews', async () => {
      const scene = await inLine('reentrant', { leaseTime: ms(LEASE + 1), fixed: true });
      expect(scene.placed.request.grantLease).toBe(LEASE);
      await asks(scene, grantTo(scene.placed));
    });

    it('if it is the newest one, which learns from the answer how many it has superseded', async () => {
      const scene = await inLine('newest', { newest: true });
      expect(scene.placed.request.nonce).toBeUndefined();
      await asks(scene, grantTo(scene.placed));
    });

    it.each(['read', 'write'] as const)('if it wants to %s, because such a lock is never granted', async (type) => {
      const scene = await inLine(type, { type });
      expect(scene.placed.request.nonce).toBeUndefined();
      await asks(scene, grantTo(scene.placed));
    });

    it.each([
      ['newest', { newest: true }],
      ['write', { type: 'write' }],
    ] as const)('as %s also after a refresh, which has no nonce either', async (kind, options) => {
      const scene = await inLine(kind, options);
      await scene.runtime.advance(REFRESHED);
      const [{ nonce }] = scene.backend.last('refreshWaiters').request;
      expect(nonce).toBeUndefined();
      await asks(scene, grantTo(scene.placed, { nonce }));
    });

    it('if less than two thirds of the lease are left, and the server does not know how much later it began', async () => {
      const scene = await inLine();
      scene.runtime.block(OLDEST + 1);
      await asks(scene, grantTo(scene.placed, { after: 0 }));
    });

    it('if too little is left even as the server says', async () => {
      const scene = await inLine();
      scene.runtime.block(2 * LEASE);
      await asks(scene, grantTo(scene.placed, { after: 2 * LEASE - OLDEST }));
    });

    it('if its lease seems to begin in the future, because the clock of the server was advanced', async () => {
      const scene = await inLine();
      scene.runtime.block(OLDEST + 1);
      await asks(scene, grantTo(scene.placed, { after: 60_000 }));
    });

    it.each([LEASE, -5_000])('if the wall clock was changed since by %i ms', async (gain) => {
      const scene = await inLine();
      scene.runtime.setWallClock(gain);
      await asks(scene, grantTo(scene.placed));
    });

    it('if the machine was suspended since', async () => {
      const scene = await inLine();
      scene.runtime.suspend(OLDEST + 1);
      await asks(scene, grantTo(scene.placed));
    });

    it('if messages may have been lost', async () => {
      const scene = await inLine();
      await asks(scene, { kind: 'resync' });
    });
  });

  describe('gets nothing from it', () => {
    it('while another request is under way, but asks at once when that finds the lock busy', async () => {
      const { backend, caller, placed } = await inLine();
      await backend.tell('line');
      const asked = backend.last('acquire');
      await backend.tell('line', grantTo(asked));
      await backend.tell('line', grantTo(placed));
      expect([backend.count('acquire'), backend.begun, caller.outcome]).toEqual([3, [], undefined]);
      await asked.busy();
      expect(backend.owners('acquire')[3]).toBe(asked.request.owner);
      await backend.last('acquire').grant();
      expect(leaseOf(caller).owner).toBe(asked.request.owner);
    });

    it('if it has asked twice under that place, and the owner was given up after a busy answer', async () => {
      const { backend, caller, placed } = await inLine();
      await backend.tell('line');
      await backend.last('acquire').busy({ validUntil: 100 }); // a copy may still be executed
      expect(backend.last('acquire').request.owner).not.toBe(placed.request.owner);
      await backend.last('acquire').busy();
      await backend.tell('line', grantTo(placed));
      expect([backend.begun, caller.outcome]).toEqual([[], undefined]);
    });

    it('if the nonce is that of a former place', async () => {
      const { backend, runtime, caller, placed } = await inLine();
      await backend.tell('line');
      await backend.last('acquire').fail('unknown');
      await runtime.advance(100);
      const present = backend.last('acquire');
      expect(present.request.owner).not.toBe(placed.request.owner);
      await present.busy();
      await backend.tell('line', grantTo(present, { nonce: placed.request.nonce }));
      expect([backend.begun, caller.outcome]).toEqual([[], undefined]);
      expect(backend.owners('acquire').at(-1)).toBe(present.request.owner);
    });

    it('if it has left', async () => {
      const abort = new AbortController();
      const { backend, engine, runtime, placed } = await inLine('reentrant', { signal: abort.signal });
      abort.abort();
      await runtime.settle();
      await backend.tell('line', grantTo(placed));
      expect([backend.begun, engine.activity().leases]).toEqual([[], 0]);
    });

    it('if the backend has released the owner of the place: then it asks as another one', async () => {
      const { backend } = await inLine();
      await backend.tell('line');
      const asked = backend.last('acquire');
      await asked.busy({ spent: true });
      await backend.tell('line', grantTo(asked));
      expect(backend.begun).toEqual([]);
      expect(backend.last('acquire').request.owner).not.toBe(asked.request.owner);
    });

    it('a second time, although the message comes twice', async () => {
      const { backend, placed, arrive } = await inLine();
      await backend.tell('line', grantTo(placed));
      const next = arrive();
      const requests = backend.requests.length;
      await backend.tell('line', grantTo(placed));
      expect([next.outcome, backend.begun.length, backend.requests.length]).toEqual([undefined, 1, requests]);
    });

    it('while it holds a lock that a wrong message made it ask for', async () => {
      const { backend, engine, placed } = await inLine();
      await backend.tell('line', grantTo(placed, { nonce: 'forged' }));
      await backend.last('acquire').grant();
      await backend.tell('line', grantTo(placed));
      await backend.tell('line', grantTo(placed, { nonce: 'forged' }));
      expect([engine.activity().leases, backend.begun]).toEqual([1, []]);
    });
  });

  describe('may have come after the request', () => {
    it('and has it if it wants the same lease, under the owner of the place', async () => {
      const abort = new AbortController();
      const { backend, runtime, placed, arrive } = await inLine('reentrant', { signal: abort.signal });
      const next = arrive();
      abort.abort();
      await runtime.settle();
      const requests = backend.requests.length;
      await backend.tell('line', grantTo(placed));
      expect(next.lease).toMatchObject({ owner: placed.request.owner, held: true });
      expect(backend.requests.length).toBe(requests);
    });

    it('and asks under the owner of the place if it wants another one', async () => {
      const abort = new AbortController();
      const { backend, runtime, placed, arrive } = await inLine('reentrant', { signal: abort.signal });
      const next = arrive({ leaseTime: ms(5_000), fixed: true });
      abort.abort();
      await runtime.settle();
      await backend.tell('line', grantTo(placed));
      expect(backend.begun).toEqual([]);
      expect(backend.last('acquire').request).toMatchObject({ owner: placed.request.owner, leaseTime: 5_000 });
      await backend.last('acquire').grant();
      expect(next.lease).toMatchObject({ owner: placed.request.owner, held: true });
    });

    it('but not if it has the lock when it leaves', async () => {
      const abort = new AbortController();
      const { backend, runtime, caller, placed } = await inLine('reentrant', { signal: abort.signal });
      await backend.tell('line', grantTo(placed));
      abort.abort();
      await runtime.settle();
      expect([caller.outcome, caller.lease?.held, backend.count('removeWaiter')]).toEqual(['held', true, 0]);
    });
  });

  describe('of which several may hold one', () => {
    /** A caller for `wanted` permits has a place, and others for the numbers `behind` wait behind it. */
    const permits = async (wanted: number, ...behind: readonly number[]) => {
      const abort = new AbortController();
      const scene = await inLine('permits', { permits: wanted, signal: abort.signal });
      const others = behind.map((number) => scene.arrive({ permits: number }));
      return { ...scene, others, leave: () => abort.abort() };
    };

    it('begins without asking, and the next one asks beside it', async () => {
      const { backend, caller, placed } = await permits(2, 2);
      await backend.tell('line', grantTo(placed));
      expect(caller.lease?.owner).toBe(placed.request.owner);
      expect(backend.owners('acquire').slice(2)).toEqual(['me:2']);
    });

    it('begins beside a holder of this process', async () => {
      const { backend, engine, arrive } = lockScene('permits', { lines: true });
      arrive();
      await backend.last('acquire').grant();
      arrive();
      await backend.last('acquire').busy();
      await backend.confirm();
      const placed = backend.last('acquire');
      await placed.busy();
      const requests = backend.requests.length;
      await backend.tell('line', grantTo(placed));
      expect([engine.activity().leases, backend.requests.length]).toEqual([2, requests]);
    });

    it('begins if it lets more hold the lock than the place said', async () => {
      const { backend, runtime, placed, others, leave } = await permits(2, 3);
      leave();
      await runtime.settle();
      await backend.tell('line', grantTo(placed));
      expect(others[0].lease?.owner).toBe(placed.request.owner);
    });

    it('gives it back if it lets fewer hold the lock than the place said', async () => {
      const { backend, engine, runtime, placed, leave } = await permits(3, 2);
      leave();
      await runtime.settle();
      expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
      await backend.tell('line', grantTo(placed));
      expect([backend.begun, engine.activity().leases]).toEqual([[], 0]);
      expect(backend.owners('removeWaiter')).toEqual([placed.request.owner, placed.request.owner]);
    });

    it('gets nothing while another request for a permit is under way', async () => {
      const { backend, engine, arrive } = lockScene('permits', { lines: true });
      const ten = { permits: 10 };
      const holders = [arrive(ten)];
      await backend.last('acquire').busy();
      await backend.confirm();
      await backend.last('acquire').grant();
      holders.push(arrive(ten));
      await backend.last('acquire').grant();
      arrive(ten);
      arrive(ten);
      const [placed, beside] = backend.sent('acquire').slice(3);
      expect([placed.request.waiterTimeout, beside.request.waiterTimeout]).toEqual([WAITER_TIMEOUT, 0]);
      for (const holder of holders) await leaseOf(holder).release();
      await placed.busy();
      await backend.tell('line', grantTo(placed));
      expect([engine.activity().leases, backend.begun]).toEqual([0, []]);
      await beside.grant();
      expect([engine.activity().leases, backend.count('removeWaiter')]).toEqual([1, 0]);
    });
  });
});

describe('a message that grants the lock to a place that was left', () => {
  const granted = ({ request: { owner } }: Pick<Sent, 'request'>): Wake => ({
    kind: 'message',
    owner,
    lock: 'granted',
  });

  /** A caller has left its place, and another one, which wants more permits, waits in its own. */
  const left = async () => {
    const abort = new AbortController();
    const scene = await inLine('permits', { permits: 3, signal: abort.signal });
    const { backend, runtime } = scene;
    const next = scene.arrive({ permits: 2 });
    abort.abort();
    await runtime.settle();
    await backend.last('acquire').busy();
    expect(backend.owners('removeWaiter')).toEqual([scene.placed.request.owner]);
    return { ...scene, next };
  };

  it('is answered by leaving it again, and is no reason to ask', async () => {
    const { backend, next, placed } = await left();
    const asked = backend.count('acquire');
    await backend.tell('line', granted(placed));
    await backend.tell('line', grantTo(placed));
    const { owner } = placed.request;
    expect(backend.owners('removeWaiter')).toEqual([owner, owner, owner]);
    expect([backend.count('acquire'), next.outcome]).toEqual([asked, undefined]);
  });

  it('is answered for as long as a promoted replica may have kept the place', async () => {
    const { backend, runtime, placed } = await left();
    await runtime.advance(WAITER_TIMEOUT - 1);
    await backend.tell('line', granted(placed));
    expect(backend.count('removeWaiter')).toBe(2);
    await runtime.advance(1);
    await backend.tell('line', granted(placed));
    expect(backend.count('removeWaiter')).toBe(2);
  });

  it('is answered also later, when other callers listen', async () => {
    const { backend, runtime, isIdle, caller, placed, arrive } = await inLine();
    await backend.tell('line', grantTo(placed));
    await leaseOf(caller).release();
    await runtime.advance(1_500); // longer than the process listens on for the next caller
    expect([isIdle(), backend.listening]).toEqual([true, []]);
    arrive();
    await backend.last('acquire').busy();
    await backend.confirm();
    await backend.last('acquire').busy();
    const requests = backend.requests.length;
    await backend.tell('line', granted(placed));
    expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
    expect(backend.requests.length).toBe(requests + 1);
  });

  it('is answered when the owner was given up because its request is in doubt', async () => {
    const { backend, runtime, placed } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').fail('unknown');
    await runtime.advance(100);
    await backend.last('acquire').busy();
    const removed = backend.count('removeWaiter');
    const asked = backend.count('acquire');
    await backend.tell('line', granted(placed));
    expect(backend.owners('removeWaiter').slice(removed)).toEqual([placed.request.owner]);
    expect(backend.count('acquire')).toBe(asked);
  });

  it('is answered when this process has released the owner by force', async () => {
    const { backend, force, placed } = await inLine();
    await force(placed.request.owner);
    await backend.last('acquire').busy();
    await backend.tell('line', grantTo(placed));
    expect([backend.begun, backend.owners('removeWaiter')]).toEqual([[], [placed.request.owner]]);
  });

  describe('is not answered while that would give back what is held:', () => {
    const held = async (options: Parameters<typeof inLine>[1] = {}) => {
      const scene = await inLine('reentrant', options);
      await scene.backend.tell('line', grantTo(scene.placed));
      return { ...scene, lease: leaseOf(scene.caller) };
    };

    it('the lock of the same owner', async () => {
      const { backend, placed } = await held();
      await backend.tell('line', granted(placed));
      expect(backend.count('removeWaiter')).toBe(0);
    });

    it('its release, until it is answered', async () => {
      const { backend, runtime, placed, lease, arrive } = await held();
      await runtime.advance(100);
      arrive(); // so that the process listens on
      backend.hold('release');
      const released = lease.release();
      await runtime.settle();
      await backend.tell('line', granted(placed));
      expect(backend.count('removeWaiter')).toBe(0);
      await backend.last('release').answer({ released: true, listeners: 0, published: false, resent: false });
      await released;
      await backend.tell('line', granted(placed));
      expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
    });

    it('but after it was lost', async () => {
      const { backend, runtime, placed, lease, arrive } = await held();
      arrive();
      backend.hold('renew');
      await runtime.advance(LEASE);
      expect(lease.held).toBe(false);
      await backend.last('acquire').busy();
      const removed = backend.count('removeWaiter');
      await backend.tell('line', granted(placed));
      expect(backend.owners('removeWaiter').slice(removed)).toEqual([placed.request.owner]);
    });
  });
});
