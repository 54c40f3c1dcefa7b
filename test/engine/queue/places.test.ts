import { KEPT_FAR_BACK } from '../../../lib/backends/line-backend.js';
import { BackendError, HEAD_START } from '../../../lib/backends/lock-backend.js';
import { ms } from '../../support/lock-world.js';
import { grantTo, inLine, KEY, leaseOf, lockScene, type Scene, WAITER_TIMEOUT } from './scripted-scene.js';

describe('the callers of a lock in one process, in a line of processes,', () => {
  it('have no place before they listen, and enter the line then, and again with each request', async () => {
    const { backend, placed } = await inLine();
    expect(backend.types).toEqual(['line']);
    const [first, second] = backend.sent('acquire');
    expect([first.request.waiterTimeout, first.request.nonce]).toEqual([0, undefined]);
    expect(second).toBe(placed);
    expect([placed.request.waiterTimeout, placed.request.owner]).toEqual([WAITER_TIMEOUT, 'me:1']);
    expect(placed.request.nonce).toEqual(expect.any(String));
    await backend.tell('line', { kind: 'message', owner: 'me:1' });
    expect(backend.last('acquire').request.waiterTimeout).toBe(WAITER_TIMEOUT);
    expect(backend.last('acquire').request.nonce).not.toBe(placed.request.nonce);
  });

  it('have no place while they do not listen yet, even if the lease of the holder has ended', async () => {
    const { backend, runtime, arrive } = lockScene('reentrant', { lines: true });
    arrive();
    await backend.last('acquire').busy({ remaining: 10 });
    await runtime.advance(12);
    expect([backend.count('acquire'), backend.last('acquire').request.waiterTimeout]).toEqual([2, 0]);
  });

  it('ask at once after a message, because only they are meant', async () => {
    const { backend } = await inLine();
    await backend.tell('line');
    expect(backend.count('acquire')).toBe(3);
  });

  it('leave the lock to those outside the line at first, if a release says so, but ask at once after another message', async () => {
    const { backend, runtime } = await inLine();
    await backend.tell('line', { kind: 'message', lock: 'free' });
    await runtime.advance(HEAD_START - 1);
    expect(backend.count('acquire')).toBe(2);
    await runtime.advance(2);
    expect(backend.count('acquire')).toBe(3);
    // The same if it comes while a request is under way.
    await backend.tell('line', { kind: 'message', lock: 'free' });
    await backend.last('acquire').busy();
    await runtime.advance(HEAD_START - 1);
    expect(backend.count('acquire')).toBe(3);
    await runtime.advance(2);
    expect(backend.count('acquire')).toBe(4);
    await backend.tell('line', { kind: 'message', lock: 'free' });
    await backend.last('acquire').busy();
    await backend.tell('line');
    expect(backend.count('acquire')).toBe(5);
  });

  it('ignore messages for places of other locks', async () => {
    const { backend, caller, placed } = await inLine();
    const { grant } = grantTo(placed);
    await backend.tell('line', { kind: 'message', owner: 'me:55' });
    await backend.tell('line', { kind: 'message', owner: 'me:55', lock: 'granted', grant });
    expect([backend.requests.length, caller.outcome]).toEqual([2, undefined]);
    await backend.tell('line', { kind: 'message', owner: 'me:1' });
    expect(backend.count('acquire')).toBe(3);
    await backend.tell('line', { kind: 'message', owner: 'me:55' });
    await backend.last('acquire').busy();
    expect(backend.count('acquire')).toBe(3);
  });

  it('leave a place that they have given up once more when a message is for that, and ask, because they have no other', async () => {
    const { backend } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').fail('unknown');
    expect([backend.owners('release'), backend.owners('removeWaiter')]).toEqual([['me:1'], ['me:1']]);
    await backend.tell('line', { kind: 'message', owner: 'me:1' });
    expect(backend.owners('removeWaiter')).toEqual(['me:1', 'me:1']);
    expect(backend.owners('acquire').slice(3)).toEqual(['me:2']);
  });

  it('keep their place as long as they wait, and ask at once if it was lost', async () => {
    const { backend, runtime, placed } = await inLine();
    backend.hold('refreshWaiters');
    await runtime.advance(WAITER_TIMEOUT / 3);
    const [refreshed] = backend.last('refreshWaiters').request;
    expect(refreshed).toEqual({ key: KEY, type: 'reentrant', owner: 'me:1', nonce: expect.any(String) });
    expect(refreshed.nonce).not.toBe(placed.request.nonce);
    await backend.last('refreshWaiters').answer([false]);
    expect(backend.count('acquire')).toBe(3);
  });

  it('refresh it again if a refresh has failed', async () => {
    const { backend, runtime } = await inLine();
    backend.hold('refreshWaiters');
    await runtime.advance(WAITER_TIMEOUT / 3);
    await backend.last('refreshWaiters').fail();
    await runtime.advance(WAITER_TIMEOUT / 3);
    expect([backend.count('refreshWaiters'), backend.count('acquire')]).toEqual([2, 2]);
  });

  it('refresh it less often while it is far back in line, because the backend keeps it longer', async () => {
    const { backend, runtime } = await inLine();
    backend.keepsLonger = true;
    await runtime.advance(WAITER_TIMEOUT / 3);
    expect(backend.count('refreshWaiters')).toBe(1);
    await runtime.advance((KEPT_FAR_BACK * WAITER_TIMEOUT) / 3 - 1);
    expect(backend.count('refreshWaiters')).toBe(1);
    backend.keepsLonger = false;
    await runtime.advance(1);
    expect(backend.count('refreshWaiters')).toBe(2);
    await runtime.advance(WAITER_TIMEOUT / 3);
    expect(backend.count('refreshWaiters')).toBe(3);
  });

  it('refresh it as usual after a request that has entered the line again, no longer far back', async () => {
    const { backend, runtime } = await inLine();
    backend.keepsLonger = true;
    await runtime.advance(WAITER_TIMEOUT / 3);
    backend.keepsLonger = false;
    await runtime.advance(1_000);
    await backend.tell('line');
    await backend.last('acquire').busy();
    await runtime.advance(WAITER_TIMEOUT / 3 - 1);
    expect(backend.count('refreshWaiters')).toBe(1);
    await runtime.advance(1);
    expect(backend.count('refreshWaiters')).toBe(2);
  });

  it('refresh it for the first time as late if the answer to the request says so', async () => {
    const { backend, runtime, arrive } = lockScene('reentrant', { lines: true });
    arrive();
    await backend.last('acquire').busy();
    await backend.confirm();
    await backend.last('acquire').busy({ keptLonger: true });
    await runtime.advance((KEPT_FAR_BACK * WAITER_TIMEOUT) / 3 - 1);
    expect(backend.count('refreshWaiters')).toBe(0);
    await runtime.advance(1);
    expect(backend.count('refreshWaiters')).toBe(1);
  });

  it('send no heartbeat once they have the lock', async () => {
    const { backend, runtime } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').grant();
    await runtime.advance(WAITER_TIMEOUT);
    expect([backend.count('refreshWaiters'), backend.count('removeWaiter')]).toEqual([0, 0]);
  });

  it('leave the line, and stop, with the last of them', async () => {
    const { backend, runtime, isIdle, guest } = lockScene('reentrant', { lines: true });
    const { leave } = guest();
    await backend.last('acquire').busy();
    await backend.confirm();
    await backend.last('acquire').busy({ remaining: 5_000 });
    leave();
    await runtime.settle();
    expect([backend.owners('removeWaiter'), backend.types, runtime.timers]).toEqual([['me:1'], [], 0]);
    expect(isIdle()).toBe(true);
  });

  it('try again in the background to leave it if there was no answer', async () => {
    const { backend, runtime, guest } = lockScene('reentrant', { lines: true });
    const { leave } = guest();
    await backend.last('acquire').busy();
    await backend.confirm();
    await backend.last('acquire').busy();
    backend.hold('removeWaiter');
    leave();
    await runtime.settle();
    await backend.last('removeWaiter').fail('unknown');
    await runtime.advance(1_000);
    expect(backend.count('removeWaiter')).toBeGreaterThan(1);
  });

  it('ask under the owner of the place when the first of them has left', async () => {
    const { backend, runtime, guest, arrive } = lockScene('reentrant', { lines: true });
    const { leave } = guest();
    const next = arrive();
    await backend.last('acquire').busy();
    await backend.confirm();
    await backend.last('acquire').busy();
    leave();
    await runtime.settle();
    await backend.tell('line');
    await backend.last('acquire').grant();
    expect([next.lease?.owner, backend.count('removeWaiter')]).toEqual(['me:1', 0]);
  });

  it('ask under another owner once their place was released by force, unless a request is under way', async () => {
    const { backend, force } = await inLine();
    await force('me:55');
    expect(backend.count('acquire')).toBe(2);
    await force('me:1');
    expect(backend.owners('acquire').slice(2)).toEqual(['me:2']);
    await force('me:2');
    await backend.last('acquire').busy();
    expect(backend.count('acquire')).toBe(3);
  });

  it('release their place, too, if a request under it got no answer, and wait under another owner', async () => {
    const { backend, runtime } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').fail('unknown');
    expect([backend.owners('release'), backend.owners('removeWaiter')]).toEqual([['me:1'], ['me:1']]);
    await runtime.advance(51);
    expect(backend.last('acquire').request).toMatchObject({ owner: 'me:2', waiterTimeout: WAITER_TIMEOUT });
  });

  it('keep a place whose owner was released by the backend until the next request is answered', async () => {
    const { backend } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').busy({ spent: true });
    await backend.tell('line');
    expect([backend.last('acquire').request.owner, backend.count('removeWaiter')]).toEqual(['me:2', 0]);
    await backend.last('acquire').busy();
    expect(backend.owners('removeWaiter')).toEqual(['me:1']);
    await backend.tell('line');
    await backend.last('acquire').busy();
    expect(backend.count('removeWaiter')).toBe(1);
  });

  it('ask again at once if the answer names their own place as the holder', async () => {
    const { backend } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').busy({ holder: 'me:1' });
    expect(backend.count('acquire')).toBe(4);
  });

  it('ask again at once if their place was given up with a busy answer, because they would hear of nothing', async () => {
    const { backend } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').busy({ validUntil: 100 });
    expect([backend.owners('release'), backend.count('acquire')]).toEqual([['me:1'], 4]);
    expect(backend.last('acquire').request).toMatchObject({ owner: 'me:2', waiterTimeout: WAITER_TIMEOUT });
  });

  it('wait without a line if the backend has lost the right to it', async () => {
    const { backend, runtime } = await inLine();
    backend.line = undefined;
    await backend.tell('line');
    expect(backend.owners('removeWaiter')).toEqual(['me:1']);
    expect(backend.last('acquire').request.waiterTimeout).toBe(0);
    await backend.last('acquire').busy();
    expect(backend.types).toEqual(['reentrant']);
    await backend.tell('reentrant');
    await runtime.advance(12);
    expect(backend.count('acquire')).toBe(4);
  });

  it.each(['reentrant', 'newest'] as const)(
    'enter a line that appears only when they listen there: %s',
    async (kind) => {
      const { backend, arrive } = lockScene(kind);
      arrive();
      await backend.last('acquire').busy();
      await backend.confirm();
      await backend.last('acquire').busy();
      backend.withLine();
      backend.heard[0].listener({ kind: 'resync' });
      expect([backend.count('acquire'), backend.last('acquire').request.waiterTimeout]).toEqual([3, 0]);
      await backend.last('acquire').busy();
      expect(backend.types).toEqual(['line']);
      await backend.confirm();
      expect([backend.count('acquire'), backend.last('acquire').request.waiterTimeout]).toEqual([4, WAITER_TIMEOUT]);
    },
  );

  it('leave the line as soon as they learn that it is gone', async () => {
    const { backend } = await inLine();
    await backend.tell('line');
    backend.line = undefined;
    await backend.last('acquire').fail();
    expect(backend.owners('removeWaiter')).toEqual(['me:1']);
    expect(backend.types).toEqual([]);
  });

  it('listen beside the line for the release of a holder that does not serve it', async () => {
    const { backend } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').busy({ heldAs: 'reentrant' });
    expect(backend.types).toEqual(['line', 'reentrant']);
    await backend.tell('reentrant');
    expect(backend.count('acquire')).toBe(4);
  });

  describe('for permits', () => {
    const two = { permits: 2 };
    const three = { permits: 3 };

    /** A process that holds a permit, and has a place for another one. */
    const besideHolder = async (options: Parameters<Scene['arrive']>[0] = two, reserved = 0) => {
      const scene = lockScene('permits', { lines: true });
      const { backend } = scene;
      const holder = scene.arrive(options);
      await backend.last('acquire').grant({ reserved });
      const { caller, leave } = scene.guest(options);
      await backend.last('acquire').busy();
      await backend.confirm();
      const placed = backend.last('acquire');
      await placed.busy({ remaining: 5_000 });
      return { ...scene, holder, caller, leave, placed };
    };

    it('leave the line while they hold some and nobody waits', async () => {
      const { backend, runtime, arrive, leave, placed } = await besideHolder();
      leave();
      await runtime.settle();
      expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
      arrive();
      expect(backend.count('acquire')).toBe(4);
    });

    it.each([2, 3])('keep a place that lets no more hold the lock than the next caller: %i', async (permits) => {
      const { backend, runtime, guest, arrive } = lockScene('permits', { lines: true });
      const { leave } = guest(two);
      arrive({ permits });
      for (const sent of backend.sent('acquire')) await sent.busy();
      await backend.confirm();
      await backend.last('acquire').busy();
      leave();
      await runtime.settle();
      await backend.tell('line');
      expect([backend.count('removeWaiter'), backend.last('acquire').request.owner]).toEqual([0, 'me:1']);
    });

    it('give up a place that lets more hold the lock than the next caller does', async () => {
      const { backend, runtime, guest, arrive } = lockScene('permits', { lines: true });
      const { leave } = guest(three);
      const next = arrive(two);
      for (const sent of backend.sent('acquire')) await sent.busy();
      await backend.confirm();
      await backend.last('acquire').busy();
      leave();
      await runtime.settle();
      expect(backend.owners('removeWaiter')).toEqual(['me:1']);
      await backend.last('acquire').grant();
      expect(next.lease?.owner).toBe('me:2');
    });

    it('transfer a permit to another owner than that of the place, and leave the line with the last caller', async () => {
      const { backend, holder, caller, placed } = await besideHolder();
      void leaseOf(holder).release();
      const { to } = backend.last('transfer').request;
      expect(to).not.toBe(placed.request.owner);
      await backend.last('transfer').grant();
      expect([leaseOf(caller).owner, backend.owners('removeWaiter')]).toEqual([to, [placed.request.owner]]);
    });

    it('give up such a place also if the one before has inherited a permit', async () => {
      const { backend, runtime, holder, caller, arrive, placed } = await besideHolder(three, 64);
      const narrow = arrive(two);
      await leaseOf(holder).release();
      await runtime.settle();
      expect([caller.outcome, narrow.outcome]).toEqual(['held', undefined]);
      await backend.tell('line');
      expect(backend.last('acquire').request.owner).not.toBe(placed.request.owner);
      expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
    });

    it('leave the line when the last caller has inherited a permit, and ask for the next one at once', async () => {
      const { backend, runtime, holder, caller, arrive, placed } = await besideHolder(two, 64);
      await leaseOf(holder).release();
      await runtime.settle();
      expect([caller.outcome, backend.owners('removeWaiter')]).toEqual(['held', [placed.request.owner]]);
      arrive();
      expect(backend.count('acquire')).toBe(4);
    });

    it('leave the line also when the last caller inherits a permit only in the next turn of the event loop', async () => {
      const { backend, runtime, arrive } = lockScene('permits', { lines: true });
      let holder = arrive(two);
      arrive(two);
      for (const sent of backend.sent('acquire')) await sent.grant({ reserved: 1_000 });
      let last = arrive(three);
      await backend.last('acquire').busy();
      await backend.confirm();
      const placed = backend.last('acquire');
      await placed.busy({ remaining: 20_000 });
      // As many as one turn hands on, and one more.
      for (let handOff = 1; handOff < 256; handOff++) {
        const next = last;
        last = arrive(three);
        void leaseOf(holder).release();
        await Promise.resolve();
        holder = next;
        if (holder.lease === undefined) await runtime.settle();
      }
      void leaseOf(holder).release();
      await runtime.advance(1);
      expect(last.outcome).toBe('held');
      expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
      expect(runtime.keepAliveTimers).toBe(0);
    });

    it.each(['grant', 'busy'] as const)(
      'give up a place under which they ask only when the request has ended: %s',
      async (answer) => {
        const abort = new AbortController();
        const { signal } = abort;
        const { backend, runtime, arrive } = await inLine('permits', { ...three, signal });
        arrive({ ...three, signal });
        arrive({ ...two, signal });
        const narrow = arrive(two);
        const wide = arrive(three);
        await backend.tell('line');
        const asked = backend.last('acquire');
        expect(asked.request).toMatchObject({ reserve: 64, waiterTimeout: WAITER_TIMEOUT });
        abort.abort();
        await runtime.settle();
        expect(backend.count('removeWaiter')).toBe(0);
        await asked[answer]();
        // A permit that was granted is given back, because the next caller lets fewer hold the lock.
        const isGranted = answer === 'grant';
        expect(backend.owners(isGranted ? 'release' : 'removeWaiter')).toEqual([asked.request.owner]);
        expect(backend.count(isGranted ? 'removeWaiter' : 'release')).toBe(0);
        expect([narrow.outcome, wide.outcome]).toEqual([undefined, undefined]);
        expect(backend.last('acquire').request.owner).not.toBe(asked.request.owner);
        await backend.last('acquire').grant();
        expect(narrow.outcome).toBe('held');
      },
    );

    it.each(['asks', 'is refused'])(
      'give up a place under which they ask only when the request has ended, if the line is lost when another caller %s',
      async (when) => {
        const five = { permits: 5 };
        const { backend, arrive } = await inLine('permits', five);
        await backend.tell('line');
        await backend.last('acquire').grant();
        arrive(five);
        await backend.last('acquire').grant();
        arrive(five);
        const placed = backend.last('acquire');
        if (when === 'asks') backend.line = undefined;
        arrive(five);
        const other = backend.last('acquire');
        expect([placed.request.waiterTimeout, other.request.waiterTimeout]).toEqual([WAITER_TIMEOUT, 0]);
        backend.line = undefined;
        await other.busy();
        expect(backend.count('removeWaiter')).toBe(0);
        await placed.busy();
        await backend.tell('permits');
        await backend.confirm();
        expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
      },
    );
  });

  describe('for readers', () => {
    it('ask for one reader under the place, and the others follow it past the line', async () => {
      const { backend, arrive } = await inLine('read');
      const followers = [arrive(), arrive()];
      arrive({ type: 'write' });
      const behind = arrive();
      await backend.tell('line');
      expect(backend.owners('acquire').slice(2)).toEqual(['me:1']);
      await backend.last('acquire').grant();
      const past = backend.sent('acquire').slice(3);
      expect(past).toHaveLength(2);
      for (const { request } of past) expect(request).toMatchObject({ pastLine: true, waiterTimeout: 0 });
      for (const sent of past) await sent.grant();
      expect(followers.map(({ outcome }) => outcome)).toEqual(['held', 'held']);
      expect(behind.outcome).toBeUndefined();
    });

    it('let nobody go past the line behind a writer that has left before it was granted the lock', async () => {
      const { backend, runtime, guest, arrive } = lockScene('write', { lines: true });
      const { leave } = guest();
      await backend.last('acquire').busy();
      await backend.confirm();
      const reader = arrive({ type: 'read' });
      leave();
      await runtime.settle();
      await backend.last('acquire').grant();
      expect(backend.last('acquire').request.pastLine).toBe(false);
      await backend.last('acquire').grant();
      expect(reader.outcome).toBe('held');
    });

    it('let nobody go past the line with a reader that has no place, or behind a writer', async () => {
      const { backend, runtime, arrive } = lockScene('read', { lines: true });
      arrive();
      arrive();
      await backend.sent('acquire')[0].grant();
      await backend.sent('acquire')[1].fail();
      await runtime.advance(51);
      expect(backend.last('acquire').request.pastLine).toBe(false);

      const writing = await inLine('write');
      writing.arrive({ type: 'read' });
      await writing.backend.tell('line');
      await writing.backend.last('acquire').grant();
      await leaseOf(writing.caller).release();
      expect(writing.backend.last('acquire').request).toMatchObject({ type: 'read', pastLine: false });
    });

    /** Answers all requests together that are under way, until none is, or a hundred times. */
    const refuseAll = async ({ backend, runtime }: Pick<Scene, 'backend' | 'runtime'>) => {
      for (let round = 0; round < 100; round++) {
        const unanswered = backend.sent('acquire').filter(({ isAnswered }) => !isAnswered);
        if (unanswered.length === 0) return;
        await Promise.all(unanswered.map((sent) => sent.busy()));
        await runtime.advance(1);
      }
    };

    it('let one of them enter the line when they have asked beside one that tries once', async () => {
      const { backend, caller, arrive, trier, runtime } = await inLine('read');
      await backend.tell('line');
      await backend.last('acquire').grant();
      await leaseOf(caller).release();
      const before = backend.count('acquire');
      const once = trier();
      arrive();
      arrive();
      await refuseAll({ backend, runtime });
      expect([once.outcome, backend.count('acquire') - before]).toEqual(['LockBusyError', 2]);
      expect(backend.last('acquire').request.waiterTimeout).toBe(WAITER_TIMEOUT);
    });

    it('let one of them enter the line when the writer in front has left with another caller', async () => {
      const abort = new AbortController();
      const { signal } = abort;
      const { backend, arrive, runtime } = await inLine('read', { type: 'write', signal });
      await backend.tell('line');
      arrive({ type: 'write', signal });
      arrive();
      arrive();
      const before = backend.count('acquire');
      abort.abort();
      await refuseAll({ backend, runtime });
      expect(backend.count('acquire') - before).toBe(1);
      expect(backend.last('acquire').request).toMatchObject({ type: 'read', waiterTimeout: WAITER_TIMEOUT });
    });
  });
});

describe('callers of a lock that rest', () => {
  /** How often the node is pinged in three seconds. */
  const pings = async ({ backend, runtime }: Pick<Scene, 'backend' | 'runtime'>) => {
    await runtime.advance(3_000);
    return backend.pings;
  };

  it('let nobody ping the node while the request of the only one is unanswered', async () => {
    const scene = lockScene('reentrant', { health: true });
    scene.arrive();
    expect(await pings(scene)).toBe(0);
  });

  it('let the node be pinged if others wait behind the one that asks, or behind a holder of this process', async () => {
    const scene = lockScene('reentrant', { health: true });
    scene.arrive();
    scene.arrive();
    expect(await pings(scene)).toBe(1);
    const other = lockScene('reentrant', { health: true });
    other.arrive();
    await other.backend.last('acquire').grant();
    other.arrive();
    expect(await pings(other)).toBe(1);
  });

  it('let the node be pinged if another process holds the lock', async () => {
    const scene = lockScene('reentrant', { health: true });
    scene.arrive();
    await scene.backend.last('acquire').busy();
    expect(await pings(scene)).toBe(1);
  });

  it('leave no timer when all of them were served, and have given the lock back', async () => {
    const { backend, runtime, arrive } = lockScene('reentrant', { health: true });
    const holder = arrive();
    await backend.last('acquire').grant();
    const next = arrive();
    const { timers } = runtime;
    void leaseOf(holder).release();
    await backend.last('transfer').grant();
    await leaseOf(next).release();
    await runtime.settle();
    expect(timers).toBeGreaterThan(1);
    await runtime.advance(1_500); // the watchdog finds nothing to do
    expect(runtime.timers).toBe(0);
  });

  it('keep no process alive if their waitTime is unlimited', () => {
    const { runtime, arrive } = lockScene();
    arrive({ waitTime: ms(1_000) });
    expect(runtime.keepAliveTimers).toBe(1);
    const forever = lockScene();
    forever.arrive();
    expect(forever.runtime.keepAliveTimers).toBe(0);
  });
});

describe('callers of a lock that wait in the backend', () => {
  const BUSY = { acquired: false, remaining: 5_000, holder: 'other:1' } as const;
  const blocked = () => {
    const scene = lockScene('reentrant', { blocking: true });
    return { ...scene, first: scene.guest(), sent: scene.backend.last('acquire') };
  };

  it('end the wait of the request there when nobody waits here any more', async () => {
    const { backend, isIdle, first, sent } = blocked();
    first.leave();
    expect(backend.stopped).toEqual([sent.request]);
    await sent.busy();
    expect([backend.heard.length, isIdle()]).toEqual([0, true]);
  });

  it('keep the request while others wait', () => {
    const { backend, first, arrive } = blocked();
    arrive();
    first.leave();
    expect(backend.stopped).toEqual([]);
  });

  it('ask without waiting there if they try once', async () => {
    const { backend, runtime, trier } = lockScene('reentrant', { blocking: true });
    let waited = 0;
    const { acquire } = backend.blocking as NonNullable<typeof backend.blocking>;
    Object.assign(backend.blocking as object, {
      acquire: (...call: Parameters<typeof acquire>) => {
        waited++;
        return acquire(...call);
      },
    });
    trier();
    await runtime.settle();
    expect([waited, backend.count('acquire')]).toEqual([0, 1]);
  });

  it('are refused if they try once when the backend says that the request waits for the lock', async () => {
    const { runtime, sent, arrive, trier } = blocked();
    const once = trier();
    await runtime.settle();
    expect(once.outcome).toBeUndefined();
    sent.onWait(BUSY);
    const late = trier();
    await runtime.settle();
    expect([once.outcome, late.outcome]).toEqual(['LockBusyError', 'LockBusyError']);
    const patient = arrive({ waitTime: ms(1_000) });
    await runtime.advance(1_001);
    expect(patient.error).toMatchObject({ name: 'LockBusyError', holder: 'other:1', remainingTime: 4_000 });
  });

  it('are refused if they try once when the backend waits for a connection, but not the others', async () => {
    const { runtime, sent, first, arrive, trier } = blocked();
    const once = trier();
    const patient = arrive();
    sent.onWait(new BackendError('no connection', 'unavailable', 'refused'));
    await runtime.settle();
    expect(once.error).toMatchObject({
      name: 'LockUnavailableError',
      message: expect.stringContaining('no connection'),
    });
    expect([first.caller.outcome, patient.outcome]).toEqual([undefined, undefined]);
  });

  it('let the node be pinged', async () => {
    const { backend, runtime, arrive } = lockScene('reentrant', { health: true, blocking: true });
    arrive();
    backend.last('acquire').onWait(BUSY);
    await runtime.advance(3_000);
    expect(backend.pings).toBe(1);
  });
});
