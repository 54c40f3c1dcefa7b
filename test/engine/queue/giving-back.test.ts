import { HEAD_START, type ReleaseRequest } from '../../../lib/backends/lock-backend.js';
import { ms } from '../../support/lock-world.js';
import { held, inLine, leaseOf, lockScene, resting, type Scene } from './scripted-scene.js';

const RELEASED = { released: true, listeners: 0, published: false, resent: false };

describe('the callers of a lock behind a holder of their process', () => {
  it('ask nothing, and the first of them gets the lock from it', async () => {
    const { backend, lease, arrive } = await held();
    const [first, second] = [arrive(), arrive()];
    void lease.release();
    expect(backend.count('acquire')).toBe(1);
    expect(backend.last('transfer').request).toMatchObject({ from: 'me:1', to: 'me:2' });
    await backend.last('transfer').grant();
    expect([first.outcome, second.outcome, backend.count('release')]).toEqual(['held', undefined, 0]);
    expect(first.lease?.owner).toBe('me:2');
  });

  it('get it without any request if there are tokens for them', async () => {
    const { backend, arrive } = lockScene();
    const holder = arrive();
    await backend.last('acquire').grant({ token: 7, reserved: 64 });
    const next = arrive();
    const requests = backend.requests.length;
    await leaseOf(holder).release();
    expect(next.lease).toMatchObject({ owner: 'me:1', fencingToken: 8 });
    expect(backend.requests.length).toBe(requests);
  });

  it('ask nothing if they read, and a writer holds it', async () => {
    const { backend, arrive } = await held('write');
    arrive({ type: 'read' });
    expect(backend.count('acquire')).toBe(1);
  });

  it.each([
    ['no answer', ['me:1', 'me:2']],
    ['gone', ['me:2']],
  ] as const)('ask as another owner if the transfer has failed: %s', async (how, released) => {
    const { backend, runtime, lease, arrive } = await held();
    const next = arrive();
    void lease.release().catch(() => {});
    if (how === 'gone') await backend.last('transfer').answer(undefined);
    else await backend.last('transfer').fail('unknown');
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:3']);
    expect([...backend.owners('release')].sort()).toEqual(released);
    await backend.last('acquire').grant();
    await runtime.settle();
    expect(next.outcome).toBe('held');
  });

  it('are refused if they try once', async () => {
    const { backend, runtime, trier } = await held();
    const once = trier();
    await runtime.settle();
    expect(once.error?.message).toContain('(this process)');
    expect(backend.count('acquire')).toBe(1);
  });

  it('no longer name the holder of another process that they had waited for', async () => {
    const { backend, runtime, caller, arrive } = await resting();
    await backend.confirm();
    await backend.last('acquire').grant();
    backend.hold('release');
    void leaseOf(caller).release();
    const late = arrive({ waitTime: ms(50) });
    await runtime.advance(51);
    expect(late.error).toMatchObject({ name: 'LockBusyError', holder: undefined });
  });

  it('ask as soon as the lock is lost', async () => {
    const { backend, runtime, arrive } = lockScene();
    const holder = arrive({ leaseTime: ms(1_000), fixed: true });
    await backend.last('acquire').grant();
    const next = arrive();
    await runtime.advance(1_000);
    expect(holder.lease?.held).toBe(false);
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:2']);
    await backend.last('acquire').grant();
    expect(next.outcome).toBe('held');
  });

  it('do not get a lock that is granted to one that has left, if nobody waits', async () => {
    const { backend, isIdle, runtime, guest } = lockScene();
    const { caller, leave } = guest();
    leave();
    await runtime.settle();
    expect(isIdle()).toBe(false);
    await backend.last('acquire').grant();
    expect([backend.owners('release'), caller.outcome, isIdle()]).toEqual([['me:1'], 'LockAbortedError', true]);
  });
});

describe('the callers of a lock while a release of their process is unanswered', () => {
  const departing = async (...settings: Parameters<typeof lockScene>) => {
    const scene = await held(...settings);
    scene.backend.hold('release');
    void scene.lease.release();
    return scene;
  };

  it.each(['reentrant', 'read'] as const)('ask nothing until it is answered: %s', async (type) => {
    const { backend, arrive } = await departing(type);
    arrive();
    expect(backend.count('acquire')).toBe(1);
    await backend.last('release').answer(RELEASED);
    expect(backend.count('acquire')).toBe(2);
  });

  it('leave nothing behind when it is answered', async () => {
    const { backend, isIdle } = await departing();
    expect(isIdle()).toBe(false);
    await backend.last('release').answer(RELEASED);
    expect(isIdle()).toBe(true);
  });

  it.each([
    [1, true],
    [0, false],
    [undefined, false],
  ] as const)('let %s others ask first who have heard of it', async (listeners, waits) => {
    const { backend, runtime, arrive } = await departing();
    arrive();
    if (listeners === undefined) await backend.last('release').fail();
    else await backend.last('release').answer({ ...RELEASED, listeners });
    expect(backend.count('acquire')).toBe(waits ? 1 : 2);
    expect(backend.types).toEqual(waits ? ['reentrant'] : []);
    await runtime.advance(12);
    expect(backend.count('acquire')).toBe(2);
  });

  it('do not wait for others who have heard of the release of a reader', async () => {
    const { backend, arrive } = await departing('read');
    arrive({ type: 'write' });
    await backend.last('release').answer({ ...RELEASED, listeners: 3 });
    expect(backend.count('acquire')).toBe(2);
  });

  describe('that others hear of, who stand in no line, let them go first', () => {
    const heard = { ...RELEASED, listeners: 3 };

    it('every second time, and not if nobody hears of it', async () => {
      const { backend, runtime, arrive } = await departing('reentrant', { lines: true });
      const asksAfter: number[] = [];
      for (const reply of [heard, heard, RELEASED, heard, heard]) {
        const caller = arrive();
        const before = backend.count('acquire');
        await backend.last('release').answer(reply);
        const answered = runtime.monotonic();
        while (backend.count('acquire') === before && runtime.monotonic() < answered + 100) await runtime.advance(1);
        asksAfter.push(runtime.monotonic() - answered);
        await backend.last('acquire').grant();
        void leaseOf(caller).release();
      }
      expect(asksAfter.map((time) => time >= HEAD_START)).toEqual([true, false, false, true, false]);
      expect(Math.max(...asksAfter)).toBeLessThan(HEAD_START + 2);
    });

    it('also if nobody waits here, as long as that', async () => {
      const { backend, isIdle, runtime, arrive } = await departing('reentrant', { lines: true });
      await backend.last('release').answer(heard);
      await runtime.advance(HEAD_START - 1);
      arrive();
      expect([backend.count('acquire'), isIdle()]).toEqual([1, false]);
      await runtime.advance(2);
      expect(backend.count('acquire')).toBe(2);
    });

    it('and end after that if still nobody waits', async () => {
      const { backend, isIdle, runtime } = await departing('reentrant', { lines: true });
      await backend.last('release').answer(heard);
      expect(isIdle()).toBe(false);
      await runtime.advance(HEAD_START + 1);
      expect([isIdle(), backend.count('acquire')]).toEqual([true, 1]);
    });

    it('also when a caller has come and gone meanwhile', async () => {
      const { backend, runtime, arrive, guest } = await departing('reentrant', { lines: true });
      await backend.last('release').answer(heard);
      guest().leave();
      await runtime.settle();
      arrive();
      expect(backend.count('acquire')).toBe(1);
      await runtime.advance(HEAD_START + 1);
      expect(backend.count('acquire')).toBe(2);
    });

    it('and ask after that also for one that tries once', async () => {
      const { backend, runtime, trier } = await departing('reentrant', { lines: true });
      await backend.last('release').answer(heard);
      const once = trier();
      await runtime.settle();
      expect([once.outcome, backend.count('acquire')]).toEqual([undefined, 1]);
      await runtime.advance(HEAD_START + 1);
      await backend.last('acquire').grant();
      expect(once.outcome).toBe('held');
    });

    it('but do not keep a shutdown waiting', async () => {
      const { backend, engine, isIdle } = await departing('reentrant', { lines: true });
      void engine.drain();
      await backend.last('release').answer(heard);
      expect(isIdle()).toBe(true);
    });
  });
});

describe('the callers of a lock while a release of their process is not sent yet', () => {
  const isWithdrawn = (release: ReleaseRequest) => release.leavesQueue?.() === false;

  /** The release that the backend has got last, as one that waits for others that are sent together with it. */
  const unsentOf = ({ backend }: Pick<Scene, 'backend'>) => {
    const release = backend.last('release').request as ReleaseRequest;
    release.queued?.();
    return release;
  };
  const unsent = async (type: 'reentrant' | 'write' = 'reentrant') => {
    const scene = await held(type);
    scene.backend.hold('release');
    void scene.lease.release();
    return { ...scene, release: unsentOf(scene) };
  };

  it('get the lock instead, and may leave as any other', async () => {
    const { backend, runtime, release, arrive } = await unsent();
    const next = arrive({ waitTime: ms(1_000) });
    expect([isWithdrawn(release), backend.count('acquire')]).toEqual([true, 1]);
    expect(backend.last('transfer').request).toMatchObject({ from: 'me:1', to: 'me:2' });
    await runtime.advance(1_001);
    expect(next.outcome).toBe('LockBusyError');
    await backend.last('transfer').grant();
    expect(backend.owners('release')).toEqual(['me:1', 'me:2']);
  });

  it('get it at once with a token, and leave no timer for their wait', async () => {
    const { backend, runtime, arrive } = lockScene();
    const holder = arrive();
    await backend.last('acquire').grant({ reserved: 64 });
    backend.hold('release');
    void leaseOf(holder).release();
    unsentOf({ backend });
    const next = arrive({ waitTime: ms(1_000) });
    await runtime.settle();
    expect([next.outcome, runtime.keepAliveTimers]).toEqual(['held', 0]);
  });

  it('let the node be pinged while they wait for the transfer', async () => {
    const { backend, runtime, arrive } = await unsent();
    backend.withHealth();
    arrive();
    await runtime.advance(3_000);
    expect(backend.pings).toBe(1);
  });

  describe('reserve tokens', () => {
    /** This process has waited for the lock and got it, so it listens for a second after each release. */
    const kept = async () => {
      const scene = await resting();
      const { backend, caller, arrive } = scene;
      await backend.confirm();
      await backend.last('acquire').grant();
      let holder = caller;
      /** Gives the lock back, and a caller arrives before the release is sent. @returns the tokens of its transfer */
      const follow = async () => {
        backend.hold('release');
        void leaseOf(holder).release();
        unsentOf(scene);
        holder = arrive();
        const { reserve } = backend.last('transfer').request;
        await backend.last('transfer').grant();
        return reserve;
      };
      /** Gives the lock back, and another caller arrives only when the release was answered. */
      const pause = async () => {
        void leaseOf(holder).release();
        await backend.last('release').answer(RELEASED);
        holder = arrive();
        await backend.last('acquire').grant();
      };
      return { follow, pause };
    };

    it('when two callers in a row came before the release was sent', async () => {
      const { follow } = await kept();
      expect([await follow(), await follow()]).toEqual([0, 64]);
    });

    it('but not when a release between them was answered before', async () => {
      const { follow, pause } = await kept();
      expect(await follow()).toBe(0);
      await pause();
      expect([await follow(), await follow()]).toEqual([0, 64]);
    });
  });

  it('leave it alone if another caller waits already that cannot have the lock without asking', async () => {
    const { release, arrive } = await unsent('write');
    arrive({ type: 'read' });
    arrive({ type: 'write' });
    expect(isWithdrawn(release)).toBe(false);
  });

  it('leave it alone if they try once', async () => {
    const { release, trier } = await unsent();
    trier();
    expect(isWithdrawn(release)).toBe(false);
  });
});

describe('the callers of a lock of whom one leaves', () => {
  it('ask for the next one only when the request of the first one is answered', async () => {
    const { backend, guest, arrive } = lockScene();
    const { leave } = guest();
    arrive();
    leave();
    expect(backend.count('acquire')).toBe(1);
    await backend.last('acquire').busy();
    await backend.confirm();
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:2']);
  });

  it('get what the first one is granted', async () => {
    const { backend, guest, arrive } = lockScene();
    const { leave } = guest();
    const next = arrive();
    leave();
    await backend.last('acquire').grant({ reserved: 64 });
    expect(next.outcome).toBe('held');
  });

  it('give up the announcement of a writer, so that the readers behind it go on', async () => {
    const { backend, runtime, guest, arrive } = lockScene('write');
    const { leave } = guest();
    const reader = arrive({ type: 'read' });
    await backend.last('acquire').busy();
    await backend.confirm();
    await backend.last('acquire').busy();
    leave();
    await runtime.settle();
    expect(backend.owners('removeWaiter')).toEqual(['me:1']);
    expect(backend.count('acquire')).toBe(3);
    await backend.last('acquire').grant();
    expect(reader.outcome).toBe('held');
  });

  it('ask for none of those who are refused together', async () => {
    const { backend, engine, runtime, arrive } = lockScene('write');
    const callers = [arrive(), arrive({ type: 'read' })];
    await backend.last('acquire').busy();
    await backend.confirm();
    await backend.last('acquire').busy();
    void engine.drain();
    await runtime.settle();
    expect(callers.map(({ outcome }) => outcome)).toEqual(['LockAbortedError', 'LockAbortedError']);
    expect([backend.owners('removeWaiter'), backend.count('acquire')]).toEqual([['me:1'], 2]);
  });

  it.each(['busy', 'fail'] as const)(
    'give up the announcement of a writer only when its request has ended: %s',
    async (end) => {
      const { backend, runtime, guest, arrive } = lockScene('write');
      const { leave } = guest();
      arrive({ type: 'read' });
      leave();
      await runtime.settle();
      expect(backend.count('removeWaiter')).toBe(0);
      await backend.last('acquire')[end]();
      expect(backend.owners('removeWaiter')).toEqual(['me:1']);
    },
  );

  it('keep the announcement for the next writer, which asks under its owner', async () => {
    const { backend, runtime, guest, arrive } = lockScene('write');
    const { leave } = guest();
    const next = arrive();
    await backend.last('acquire').busy();
    leave();
    await runtime.settle();
    await backend.confirm();
    expect(backend.count('removeWaiter')).toBe(0);
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:1']);
    await backend.last('acquire').grant();
    expect(next.lease?.owner).toBe('me:1');
  });
});

describe('the callers of a lock that several may hold', () => {
  it('ask for as many as may hold it', async () => {
    const { backend, engine, arrive } = lockScene('permits');
    const callers = [arrive(), arrive(), arrive()];
    expect(backend.sent('acquire').map(({ request }) => request)).toEqual([
      expect.objectContaining({ owner: 'me:1', permits: 2 }),
      expect.objectContaining({ owner: 'me:2', permits: 2 }),
    ]);
    await backend.sent('acquire')[0].grant();
    expect([callers[0].outcome, backend.count('acquire')]).toEqual(['held', 2]);
    await backend.sent('acquire')[1].grant();
    expect([callers[2].outcome, backend.count('acquire'), engine.activity().leases]).toEqual([undefined, 2, 2]);
  });

  it('ask for tokens if more wait than may hold it', () => {
    const { backend, arrive } = lockScene('permits');
    arrive();
    arrive();
    const [first] = backend.sent('acquire');
    expect(first.request.reserve).toBe(0);
    arrive();
    expect(first.request.reserve).toBe(64);
  });

  it('ask for one of them after they found no permit, and for twice as many after each permit that follows', async () => {
    const { backend, arrive } = lockScene('permits');
    const many = { permits: 100 };
    const underWay = () => backend.sent('acquire').filter(({ isAnswered }) => !isAnswered);
    arrive(many);
    await backend.last('acquire').busy();
    for (let i = 0; i < 40; i++) arrive(many);
    await backend.confirm();
    const counts: number[] = [];
    for (let i = 0; i < 5; i++) {
      counts.push(underWay().length);
      await underWay()[0].grant();
    }
    expect(counts).toEqual([1, 1, 2, 4, 8]);
  });

  it('pass a permit on to one that is not asking itself', async () => {
    const { backend, runtime, arrive } = lockScene('permits');
    const [holder, asks, rests] = [arrive(), arrive(), arrive()];
    await backend.sent('acquire')[0].grant({ reserved: 64 });
    await leaseOf(holder).release();
    await runtime.settle();
    expect([asks.outcome, rests.outcome]).toEqual([undefined, 'held']);
  });

  it('give a permit back that nobody inherits who is not asking', async () => {
    const { backend, arrive } = lockScene('permits');
    const [holder, asks] = [arrive(), arrive()];
    await backend.sent('acquire')[0].grant();
    await leaseOf(holder).release();
    expect([backend.owners('release'), backend.count('transfer'), asks.outcome]).toEqual([['me:1'], 0, undefined]);
  });
});

describe('callers of whom only the newest waits', () => {
  it('say how many calls they have superseded, unless the backend has counted them', async () => {
    const { backend, runtime, arrive } = lockScene('newest', { lines: true });
    const first = arrive();
    expect(backend.last('acquire').request).toMatchObject({
      type: 'reentrant',
      newest: { superseded: 0, order: undefined },
      nonce: undefined,
    });
    const [second, third] = [arrive(), arrive()];
    await runtime.settle();
    expect([first.outcome, second.outcome, backend.count('acquire')]).toEqual([undefined, 'LockSupersededError', 1]);
    await backend.last('acquire').busy({ newest: { superseded: 4, order: 9 } });
    expect(first.outcome).toBe('LockSupersededError');
    expect(backend.count('acquire')).toBe(2);
    // The first one is counted by the backend when its place is taken over.
    expect(backend.last('acquire').request.newest).toEqual({ superseded: 1, order: undefined });
    expect(backend.owners('removeWaiter')).toEqual(['me:1']);
    await backend.last('acquire').grant({ newest: { superseded: 6, order: 10 } });
    expect(leaseOf(third).superseded).toBe(6);
  });

  it('count themselves if the backend does not', async () => {
    const { backend, arrive } = lockScene('newest', { lines: true });
    arrive();
    arrive();
    const third = arrive();
    await backend.last('acquire').busy();
    await backend.last('acquire').grant();
    expect(leaseOf(third).superseded).toBe(2);
  });

  it('ask although their process holds the lock, once at a time', async () => {
    const { backend, arrive } = lockScene('newest', { lines: true });
    const holder = arrive();
    await backend.last('acquire').grant();
    arrive();
    expect([holder.outcome, backend.owners('acquire')]).toEqual(['held', ['me:1', 'me:2']]);
    arrive();
    expect(backend.count('acquire')).toBe(2);
  });

  it('keep their place when they ask again', async () => {
    const { backend } = await inLine('newest');
    await backend.tell('line');
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:1', 'me:1']);
    expect(backend.count('removeWaiter')).toBe(0);
  });

  it('are refused if their place was taken by another process, and forget the place', async () => {
    const { backend, isIdle, arrive } = lockScene('newest', { lines: true });
    const caller = arrive();
    await backend.last('acquire').busy({ superseded: true });
    expect([caller.outcome, isIdle(), backend.count('removeWaiter')]).toEqual(['LockSupersededError', true, 0]);
  });

  it('ask for the newest one at once, but not during an outage', async () => {
    const { backend, runtime, arrive } = lockScene('newest', { lines: true });
    const first = arrive();
    await backend.last('acquire').busy({ remaining: 5_000 });
    const second = arrive();
    await runtime.settle();
    expect([first.outcome, backend.count('acquire')]).toEqual(['LockSupersededError', 2]);
    await backend.last('acquire').fail();
    const third = arrive();
    await runtime.settle();
    expect([second.outcome, backend.count('acquire')]).toEqual(['LockSupersededError', 2]);
    await runtime.advance(51);
    await backend.last('acquire').grant();
    expect(third.outcome).toBe('held');
  });

  it('supersede nobody without a line of places, but in their own process', () => {
    const { backend, arrive } = lockScene('newest');
    arrive();
    expect(backend.last('acquire').request.waiterTimeout).toBe(0);
  });
});
