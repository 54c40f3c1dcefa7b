import { BackendError, type Busy, HEAD_START, type ReleaseRequest } from '../../../lib/backends/lock-backend.js';
import { Attempt } from '../../../lib/engine/ask/attempt.js';
import { type HeldLock, type LockKeeper, UNAWAITED } from '../../../lib/engine/hold/held-lock.js';
import { ms } from '../../support/lock-world.js';
import { giveBack } from '../hold/give-back.js';
import { grantTo, inLine, KEY, lockOf, lockScene, WAITER_TIMEOUT } from './scripted-scene.js';

type Scene = ReturnType<typeof lockScene>;

const RELEASED = { released: true, listeners: 0, published: false, resent: false };

/** A lock that this process holds. */
const held = async (...settings: Parameters<typeof lockScene>) => {
  const scene = lockScene(...settings);
  const holder = scene.arrive(settings[0] === 'permits' ? { permits: 2 } : {});
  await scene.backend.last('acquire').grant();
  return { ...scene, holder, lock: lockOf(holder) };
};

/** A caller that rests, because another process holds the lock. */
const resting = async (...settings: Parameters<typeof lockScene>) => {
  const scene = lockScene(...settings);
  const waiter = scene.arrive();
  await scene.backend.last('acquire').busy();
  return { ...scene, waiter };
};

describe('a queue of callers asks the backend', () => {
  it.each([
    ['reentrant', 0],
    ['fenced', 0],
    ['read', 0],
    ['write', WAITER_TIMEOUT],
  ] as const)('for its first caller, without tokens for others: type %s', async (type, waiterTimeout) => {
    const { backend, queue, arrive } = lockScene(type);
    const waiter = arrive();
    expect(backend.count('acquire')).toBe(1);
    const { request } = backend.last('acquire');
    expect(request).toMatchObject({ key: KEY, type, owner: waiter.owner, reserve: 0, waiterTimeout, pastLine: false });
    expect([request.newest, queue.isAsking]).toEqual([undefined, true]);
  });

  it('without a trace for a writer that tries once', async () => {
    const { backend, trier } = lockScene('write');
    trier();
    expect(backend.last('acquire').request).toMatchObject({ waiterTimeout: 0, nonce: undefined });
    await backend.last('acquire').busy();
    expect(backend.count('removeWaiter')).toBe(0);
  });

  it('once for all that wait, with tokens for those behind the first one', () => {
    const { backend, arrive } = lockScene();
    arrive();
    const { request } = backend.last('acquire');
    expect(request.reserve).toBe(0);
    arrive();
    expect(request.reserve).toBe(64);
    arrive();
    expect([backend.count('acquire'), request.reserve]).toEqual([1, 64]);
  });

  it('for no fewer tokens when those for whom they were asked have left', () => {
    const { backend, guest, arrive } = lockScene();
    const guests = [guest(), guest()];
    for (const { leave } of guests) leave();
    arrive();
    expect([backend.count('acquire'), backend.last('acquire').request.reserve]).toEqual([1, 64]);
  });

  it('for tokens from the beginning if others wait already', async () => {
    const { backend, arrive } = lockScene();
    arrive();
    arrive();
    await backend.last('acquire').busy();
    await backend.confirm();
    expect(backend.last('acquire').request.reserve).toBe(64);
  });

  it('for readers side by side, without tokens, up to the first writer', async () => {
    const { backend, arrive } = lockScene('read');
    const [first, second] = [arrive({ type: 'read' }), arrive({ type: 'read' })];
    arrive({ type: 'write' });
    arrive({ type: 'read' });
    expect(backend.owners('acquire')).toEqual([first.owner, second.owner]);
    expect(backend.sent('acquire').map(({ request }) => request.reserve)).toEqual([0, 0]);
    await backend.sent('acquire')[0].grant();
    expect([first.outcome, second.outcome, backend.count('acquire')]).toEqual(['held', undefined, 2]);
    await backend.sent('acquire')[1].grant();
    expect([second.outcome, backend.count('acquire')]).toEqual(['held', 2]);
  });

  it('for further readers without another look at those that ask already', async () => {
    const { backend, arrive } = lockScene('read');
    const first = arrive();
    let { attempt } = first;
    let looks = 0;
    Object.defineProperty(first, 'attempt', {
      get: () => {
        looks++;
        return attempt;
      },
      set: (value) => {
        attempt = value;
      },
    });
    const readers = Array.from({ length: 100 }, () => arrive());
    arrive({ type: 'write' });
    for (let i = 0; i < 100; i++) arrive();
    const [asked, ...others] = backend.sent('acquire');
    for (const sent of others) await sent.grant();
    expect(readers.map(({ outcome }) => outcome)).toEqual(Array(100).fill('held'));
    expect(looks).toBeLessThan(10);
    await asked.grant();
    expect([first.outcome, backend.count('acquire')]).toEqual(['held', 101]);
  });

  it('for readers that arrive when the last one that asks has left', async () => {
    const { backend, runtime, arrive, guest } = lockScene('read');
    const first = arrive();
    const { waiter, leave } = guest();
    leave();
    await runtime.settle();
    const [third, fourth] = [arrive(), arrive()];
    expect(backend.owners('acquire')).toEqual([first, waiter, third, fourth].map(({ owner }) => owner));
  });

  it('for a reader again whose lock was removed by force, although those behind it ask', async () => {
    const { backend, services, arrive } = lockScene('read');
    const first = arrive();
    const { owner } = first;
    const second = arrive();
    services.pendingAttempts.interfere({ key: KEY, owners: [owner] }, 'removed');
    await backend.sent('acquire')[0].grant();
    expect(backend.owners('acquire')).toEqual([owner, second.owner, first.owner]);
    expect(first.owner).not.toBe(owner);
  });

  it('for a writer only when the readers of its process have left', async () => {
    const { backend, queue, arrive } = lockScene('read');
    const [first, second] = [arrive(), arrive()];
    for (const sent of backend.sent('acquire')) await sent.grant();
    const writer = arrive({ type: 'write' });
    await giveBack(queue, lockOf(first));
    expect(backend.count('acquire')).toBe(2);
    await giveBack(queue, lockOf(second));
    expect(backend.owners('acquire').slice(2)).toEqual([writer.owner]);
  });

  it('says when the request of its first caller was sent, until it is answered', async () => {
    const { backend, queue, runtime, arrive } = lockScene();
    expect(queue.askedAt).toBeUndefined();
    await runtime.advance(500);
    arrive();
    await runtime.advance(100);
    expect(queue.askedAt).toBe(500);
    await backend.last('acquire').busy();
    expect([queue.askedAt, queue.isAsking]).toEqual([undefined, false]);
  });

  it('again under another owner when its process has released the lock by force meanwhile', async () => {
    const { backend, services, arrive } = lockScene();
    const waiter = arrive();
    const { owner } = waiter;
    services.pendingAttempts.interfere({ key: KEY, owners: [owner] }, 'removed');
    await backend.last('acquire').grant();
    expect(backend.owners('release')).toEqual([owner]);
    expect(backend.owners('acquire')).toEqual([owner, waiter.owner]);
    expect(waiter.owner).not.toBe(owner);
  });

  it('for the next caller after the first one has failed for good', async () => {
    const { backend, arrive } = lockScene();
    const [first, second] = [arrive(), arrive()];
    await backend.last('acquire').fail('refused', 'denied');
    expect([first.outcome, second.outcome]).toEqual(['LockUnavailableError', undefined]);
    expect(backend.owners('acquire')).toEqual([first.owner, second.owner]);
  });
});

describe('a queue of callers that got no answer', () => {
  it('asks again after a pause, as another owner if the lock may be held, and reports that once', async () => {
    const { backend, runtime, logger, arrive } = lockScene();
    const waiter = arrive();
    await backend.last('acquire').fail('unknown');
    expect(backend.count('acquire')).toBe(1);
    expect([backend.owners('release'), backend.owners('removeWaiter')]).toEqual([['me:1'], []]);
    await runtime.advance(51);
    expect(backend.owners('acquire')).toEqual(['me:1', waiter.owner]);
    await backend.last('acquire').fail();
    await runtime.advance(101);
    expect(backend.owners('acquire').slice(1)).toEqual([waiter.owner, waiter.owner]);
    expect(waiter.owner).not.toBe('me:1');
    expect(logger.errors).toEqual(["The lock 'order' could not be acquired: no connection"]);
  });

  it('refuses callers that try once, and keeps the others', async () => {
    const { backend, runtime, arrive, trier } = lockScene();
    const waiter = arrive();
    const once = trier();
    await backend.last('acquire').fail();
    expect([waiter.outcome, once.outcome]).toEqual([undefined, 'LockUnavailableError']);
    await runtime.advance(51);
    expect(backend.count('acquire')).toBe(2);
  });

  it('does not pause when nobody waits any more', async () => {
    const { backend, runtime, ends, trier } = lockScene();
    trier();
    await backend.last('acquire').fail();
    expect([runtime.timers, ends.count, backend.heard.length]).toEqual([0, 1, 0]);
  });

  it('does not let a reader pause because another one, which tried once, got no answer', async () => {
    const { backend, arrive, trier } = lockScene('read');
    arrive();
    await backend.last('acquire').grant();
    const once = trier();
    await backend.last('acquire').fail();
    expect(once.outcome).toBe('LockUnavailableError');
    arrive();
    expect(backend.count('acquire')).toBe(3);
  });

  it('does not pause after an error that is no outage', async () => {
    const { backend, runtime, logger, arrive } = lockScene();
    arrive();
    const next = arrive();
    await backend.last('acquire').fail('refused', 'closed');
    expect(logger.errors).toEqual([]);
    expect(backend.owners('acquire').at(-1)).toBe(next.owner);
    expect(runtime.keepAliveTimers).toBe(0);
  });

  it('refuses a caller as unavailable until there is an answer, and then as busy', async () => {
    const { backend, runtime, arrive } = lockScene();
    const [first, second] = [arrive({ waitTime: ms(20) }), arrive({ waitTime: ms(5_000) })];
    await backend.last('acquire').fail();
    await runtime.advance(21);
    expect(first.outcome).toBe('LockUnavailableError');
    await runtime.advance(100);
    await backend.last('acquire').busy();
    await runtime.advance(5_000);
    expect(second.outcome).toBe('LockBusyError');
  });

  it('has an answer even if that came with a forced release', async () => {
    const { backend, services, runtime, arrive } = lockScene();
    const waiter = arrive({ waitTime: ms(300) });
    await backend.last('acquire').fail();
    await runtime.advance(51);
    services.pendingAttempts.interfere({ key: KEY, owners: [waiter.owner] }, 'removed');
    await backend.last('acquire').grant();
    await runtime.advance(300);
    expect(waiter.outcome).toBe('LockBusyError');
  });
});

describe('a queue of callers behind another process', () => {
  it('listens, asks once more then, and after each message, but not in between', async () => {
    const { backend, runtime } = await resting();
    expect([backend.types, backend.count('acquire')]).toEqual([['reentrant'], 1]);
    await backend.confirm();
    expect(backend.count('acquire')).toBe(2);
    await backend.last('acquire').busy();
    await runtime.advance(60_000);
    expect(backend.count('acquire')).toBe(2);
    await backend.tell('reentrant');
    await runtime.advance(12); // all processes without a line are woken, and ask one after the other
    expect(backend.count('acquire')).toBe(3);
  });

  it('asks within 10 ms of a message, because others are woken, too', async () => {
    const { backend, runtime } = await resting();
    const delays: number[] = [];
    for (let i = 0; i < 10; i++) {
      const before = backend.count('acquire');
      await backend.tell('reentrant');
      let delay = 0;
      for (; backend.count('acquire') === before; delay++) await runtime.advance(1);
      delays.push(delay);
      await backend.last('acquire').busy();
    }
    expect(Math.max(...delays)).toBeGreaterThan(4);
    expect(Math.max(...delays)).toBeLessThan(12);
    expect(Math.min(...delays)).toBeLessThan(5);
  });

  it('asks when the lease of the holder ends', async () => {
    const { backend, runtime, arrive } = lockScene();
    arrive();
    await backend.last('acquire').busy({ remaining: 2_000 });
    await runtime.advance(2_000);
    expect(backend.count('acquire')).toBe(1);
    await runtime.advance(2);
    expect(backend.count('acquire')).toBe(2);
  });

  it('listens for the release of a holder of another type as well', async () => {
    const { backend, arrive } = lockScene();
    arrive();
    await backend.last('acquire').busy({ heldAs: 'write' });
    expect([...backend.types].sort()).toEqual(['reentrant', 'write']);
    await backend.tell('write');
    expect(backend.count('acquire')).toBe(2);
    await backend.last('acquire').busy();
    expect(backend.types).toEqual(['reentrant']);
  });

  it('asks again at once if a message came after a request was sent, although another request is newer', async () => {
    const { backend, arrive } = lockScene('read');
    arrive();
    await backend.last('acquire').busy();
    await backend.confirm();
    const older = backend.last('acquire');
    await backend.tell('read');
    arrive();
    expect(backend.count('acquire')).toBe(3);
    await older.busy();
    expect(backend.count('acquire')).toBe(4);
  });

  it('does not listen if its only caller tried once', async () => {
    const { backend, ends, runtime, trier } = lockScene();
    const once = trier();
    await backend.last('acquire').busy();
    expect([once.outcome, backend.heard.length, runtime.timers, ends.count]).toEqual(['LockBusyError', 0, 0, 1]);
  });

  it('refuses those that try once when it learns that, or knows it already', async () => {
    const { backend, arrive, trier } = lockScene();
    const first = arrive();
    const once = trier();
    expect(once.outcome).toBeUndefined();
    await backend.last('acquire').busy();
    expect([first.outcome, once.outcome]).toEqual([undefined, 'LockBusyError']);
    expect(trier().outcome).toBe('LockBusyError');
    expect(backend.count('acquire')).toBe(1);
  });

  it('refuses one that tries once when another caller of its process has got the lock', async () => {
    const { backend, arrive, trier } = lockScene();
    const first = arrive();
    const once = trier();
    await backend.last('acquire').grant();
    expect([first.outcome, once.outcome]).toEqual(['held', 'LockBusyError']);
  });

  it.each(['busy', 'grant'] as const)(
    'refuses one that tries once only when its own request has ended: %s',
    async (answer) => {
      const { backend, trier } = lockScene('read');
      const [first, second] = [trier(), trier()];
      await backend.sent('acquire')[0].busy();
      expect([first.outcome, second.outcome]).toEqual(['LockBusyError', undefined]);
      await backend.sent('acquire')[1][answer]();
      expect(second.outcome).toBe(answer === 'busy' ? 'LockBusyError' : 'held');
    },
  );

  it('refuses one that tries once while a reader of its process rests, although another one asks', async () => {
    const { backend, arrive, trier } = lockScene('read');
    arrive();
    arrive();
    await backend.sent('acquire')[0].busy();
    expect(trier().outcome).toBe('LockBusyError');
  });

  it('refuses one that tries to write once while its process reads, although another reader asks', async () => {
    const { backend, arrive, trier } = lockScene('read');
    arrive();
    await backend.last('acquire').grant();
    arrive();
    expect(trier({ type: 'write' }).outcome).toBe('LockBusyError');
  });

  it('asks at once for the next caller when the one that rested beside a holder has left', async () => {
    for (const [type, options] of [
      ['permits', { permits: 2 }],
      ['read', {}],
    ] as const) {
      const { backend, runtime, arrive, guest } = lockScene(type);
      arrive(options);
      await backend.last('acquire').grant();
      const { leave } = guest(options);
      await backend.last('acquire').busy({ remaining: 5_000 });
      leave();
      await runtime.settle();
      expect(runtime.keepAliveTimers).toBe(0);
      arrive(options);
      expect(backend.count('acquire')).toBe(3);
    }
  });

  it('asks its next callers without a pause, and without the others, when all have left', async () => {
    const { backend, ends, runtime, guest } = lockScene();
    const { leave } = guest();
    await backend.last('acquire').busy({ remaining: 5_000 });
    leave();
    await runtime.settle();
    expect([backend.types, runtime.timers, ends.count]).toEqual([[], 0, 1]);
  });

  it('listens on for a second after its last caller, which had waited, got the lock and released it', async () => {
    const { backend, ends, runtime, queue, waiter } = await resting();
    await backend.confirm();
    await backend.last('acquire').grant();
    await giveBack(queue, lockOf(waiter));
    await runtime.advance(900);
    expect([backend.types, ends.count]).toEqual([['reentrant'], 0]);
    await runtime.advance(200);
    expect([backend.types, ends.count]).toEqual([[], 1]);
  });

  it('does not listen on during shutdown', async () => {
    const { backend, ends, services, queue, waiter } = await resting();
    await backend.confirm();
    await backend.last('acquire').grant();
    Object.defineProperty(services.admission, 'isDraining', { get: () => true });
    await giveBack(queue, lockOf(waiter));
    expect([backend.types, ends.count]).toEqual([[], 1]);
  });

  it('lets the record of the holder be read if a caller gives up soon', async () => {
    const { backend, services, arrive } = lockScene();
    const looked: string[] = [];
    services.holders.expect = (owner) => void looked.push(owner);
    arrive();
    arrive({ waitTime: ms(10_000) });
    await backend.last('acquire').busy();
    expect(looked).toEqual([]);
    const other = lockScene();
    other.services.holders.expect = (owner) => void looked.push(owner);
    other.arrive();
    other.arrive({ waitTime: ms(500) });
    await other.backend.last('acquire').busy();
    expect(looked).toEqual(['other:1']);
  });

  it('asks as another owner if the backend has released the one that found the lock busy', async () => {
    const { backend, arrive } = lockScene();
    const waiter = arrive();
    await backend.last('acquire').busy({ spent: true });
    await backend.confirm();
    expect(backend.owners('acquire')).toEqual(['me:1', waiter.owner]);
    expect(waiter.owner).not.toBe('me:1');
    expect(backend.count('release')).toBe(0);
  });

  it('releases an owner in the background whose request may still be executed although the lock was busy', async () => {
    const { backend, arrive } = lockScene();
    const waiter = arrive();
    await backend.last('acquire').busy({ validUntil: 100 });
    expect(backend.owners('release')).toEqual(['me:1']);
    expect(waiter.owner).not.toBe('me:1');
  });
});

describe('a queue of callers behind a holder of its own process', () => {
  it('asks nothing, and passes the lock on to the first of them', async () => {
    const { backend, queue, lock, arrive } = await held();
    const [first, second] = [arrive(), arrive()];
    void giveBack(queue, lock);
    expect(backend.count('acquire')).toBe(1);
    expect(backend.last('transfer').request).toMatchObject({ from: lock.owner, to: first.owner });
    await backend.last('transfer').grant();
    expect([first.outcome, second.outcome, backend.count('release')]).toEqual(['held', undefined, 0]);
  });

  it('asks nothing for readers behind a writer', async () => {
    const { backend, arrive } = await held('write');
    arrive({ type: 'read' });
    expect(backend.count('acquire')).toBe(1);
  });

  it.each(['no answer', 'gone'])(
    'asks for the first one as another owner if a transfer to it has failed: %s',
    async (how) => {
      const { backend, queue, runtime, lock, arrive } = await held();
      const next = arrive();
      void giveBack(queue, lock);
      const { to } = backend.last('transfer').request;
      if (how === 'gone') await backend.last('transfer').answer(undefined);
      else await backend.last('transfer').fail('unknown');
      expect(next.owner).not.toBe(to);
      expect(backend.owners('acquire').slice(1)).toEqual([next.owner]);
      expect([...backend.owners('release')].sort()).toEqual(how === 'gone' ? [to] : [lock.owner, to].sort());
      await backend.last('acquire').grant();
      await runtime.settle();
      expect(next.outcome).toBe('held');
    },
  );

  it('refuses those that try once', async () => {
    const { backend, trier } = await held();
    expect(trier().error?.message).toContain('(this process)');
    expect(backend.count('acquire')).toBe(1);
  });

  it('no longer names the holder of another process that it had waited for', async () => {
    const { backend, queue, runtime, waiter, arrive } = await resting();
    await backend.confirm();
    await backend.last('acquire').grant();
    backend.hold('release');
    void giveBack(queue, lockOf(waiter));
    const late = arrive({ waitTime: ms(50) });
    await runtime.advance(51);
    expect(late.error).toMatchObject({ name: 'LockBusyError', holder: undefined });
  });

  it('forgets an earlier failure', async () => {
    const { backend, queue, services, caller, arrive, runtime } = lockScene();
    const waiter = arrive({ waitTime: ms(1_000) });
    await backend.last('acquire').fail();
    const { terms } = caller();
    queue.adopt(new Attempt(services, KEY, 'me:77', terms), terms, 12, queue);
    await runtime.advance(1_001);
    expect(waiter.error).toMatchObject({ name: 'LockBusyError', holder: 'me:77' });
  });

  it('asks for the first one as soon as the lock is left to lapse, or lost', async () => {
    for (const end of ['lapse', 'lost'] as const) {
      const { backend, queue, lock, arrive } = await held();
      const next = arrive();
      if (end === 'lapse') lock.abandon(new Error('too long'));
      else queue.lost(lock);
      expect(backend.owners('acquire').slice(1)).toEqual([next.owner]);
      expect(backend.owners('release')).toEqual(end === 'lapse' ? [] : [lock.owner]);
    }
  });

  it('gives a lock that was left to lapse back to the backend only', async () => {
    const { backend, queue, lock, arrive } = await held();
    lock.abandon(new Error('too long'));
    const next = arrive();
    expect(giveBack(queue, lock)).toBe('released');
    expect([backend.owners('release'), backend.count('transfer')]).toEqual([[lock.owner], 0]);
    expect(next.outcome).toBeUndefined();
  });

  it('gives a lock back that is granted to a caller which has left, and to nobody else', async () => {
    const { backend, ends, runtime, guest } = lockScene();
    const { waiter, leave } = guest();
    leave();
    await runtime.settle();
    expect(ends.count).toBe(0);
    await backend.last('acquire').grant();
    expect([backend.owners('release'), waiter.outcome, ends.count]).toEqual([[waiter.owner], 'LockAbortedError', 1]);
  });

  it('gives up the read lock of a writer when the write lock is given back', async () => {
    const { queue, lock } = await held('write');
    let abandoned = 0;
    lock.downgrade = { enqueue: () => {}, abandon: () => void abandoned++ };
    await giveBack(queue, lock);
    expect(abandoned).toBe(1);
  });
});

describe('a queue of callers while a release of its process is unanswered', () => {
  const departing = async (...settings: Parameters<typeof lockScene>) => {
    const scene = await held(...settings);
    scene.backend.hold('release');
    void giveBack(scene.queue, scene.lock);
    return scene;
  };

  it('asks nothing until it is answered, not even for readers', async () => {
    const reading = await departing('read');
    reading.arrive();
    expect(reading.backend.count('acquire')).toBe(1);
    await reading.backend.last('release').answer(RELEASED);
    expect(reading.backend.count('acquire')).toBe(2);
    const { backend, queue, lock, arrive } = await departing();
    expect([queue.isAsking, queue.leaving]).toEqual([true, lock.owner]);
    arrive();
    expect([backend.count('acquire'), queue.leaving]).toEqual([1, undefined]);
    await backend.last('release').answer(RELEASED);
    expect(backend.count('acquire')).toBe(2);
  });

  it('ends when it is answered', async () => {
    const { backend, queue, ends } = await departing();
    expect(ends.count).toBe(0);
    await backend.last('release').answer(RELEASED);
    expect([queue.isAsking, queue.leaving, ends.count]).toEqual([false, undefined, 1]);
  });

  it('names no owner that is leaving while an adoption has claimed it', async () => {
    const { queue } = await departing();
    void queue.awaitClaim();
    expect(queue.leaving).toBeUndefined();
  });

  it('lets others ask first who have heard of the release, but not if there are none, or nobody knows', async () => {
    for (const [listeners, waits] of [
      [1, true],
      [0, false],
      [undefined, false],
    ] as const) {
      const { backend, runtime, arrive } = await departing();
      arrive();
      if (listeners === undefined) await backend.last('release').fail();
      else await backend.last('release').answer({ ...RELEASED, listeners });
      expect(backend.count('acquire')).toBe(waits ? 1 : 2);
      expect(backend.types).toEqual(waits ? ['reentrant'] : []);
      await runtime.advance(12);
      expect(backend.count('acquire')).toBe(2);
    }
  });

  it('does not wait for others who have heard of the release of a reader', async () => {
    const { backend, arrive } = await departing('read');
    arrive({ type: 'write' });
    await backend.last('release').answer({ ...RELEASED, listeners: 3 });
    expect(backend.count('acquire')).toBe(2);
  });

  describe('that others hear of, who stand in no line, lets them go first', () => {
    const heard = { ...RELEASED, listeners: 3 };

    it('every second time, and not if nobody hears of it', async () => {
      const { backend, queue, runtime, arrive } = await departing('reentrant', { lines: true });
      const asksAfter: number[] = [];
      for (const reply of [heard, heard, RELEASED, heard, heard]) {
        const waiter = arrive();
        const before = backend.count('acquire');
        await backend.last('release').answer(reply);
        const answered = runtime.monotonic();
        while (backend.count('acquire') === before && runtime.monotonic() < answered + 100) await runtime.advance(1);
        asksAfter.push(runtime.monotonic() - answered);
        await backend.last('acquire').grant();
        void giveBack(queue, lockOf(waiter));
      }
      expect(asksAfter.map((time) => time >= HEAD_START)).toEqual([true, false, false, true, false]);
      expect(Math.max(...asksAfter)).toBeLessThan(HEAD_START + 2);
    });

    it('also if nobody waits here, as long as that', async () => {
      const { backend, ends, runtime, arrive } = await departing('reentrant', { lines: true });
      await backend.last('release').answer(heard);
      await runtime.advance(HEAD_START - 1);
      const waiter = arrive();
      expect([backend.count('acquire'), ends.count]).toEqual([1, 0]);
      await runtime.advance(2);
      expect(backend.owners('acquire').slice(1)).toEqual([waiter.owner]);
    });

    it('and ends after that if still nobody waits', async () => {
      const { backend, ends, runtime } = await departing('reentrant', { lines: true });
      await backend.last('release').answer(heard);
      expect(ends.count).toBe(0);
      await runtime.advance(HEAD_START + 1);
      expect([ends.count, backend.count('acquire')]).toEqual([1, 1]);
    });

    it('also when a caller has come and gone meanwhile', async () => {
      const { backend, runtime, arrive, guest } = await departing('reentrant', { lines: true });
      await backend.last('release').answer(heard);
      const { leave } = guest();
      leave();
      await runtime.settle();
      arrive();
      expect(backend.count('acquire')).toBe(1);
      await runtime.advance(HEAD_START + 1);
      expect(backend.count('acquire')).toBe(2);
    });

    it('and lets a caller that tries once ask after that', async () => {
      const { backend, runtime, trier } = await departing('reentrant', { lines: true });
      await backend.last('release').answer(heard);
      const once = trier();
      expect([once.outcome, backend.count('acquire')]).toEqual([undefined, 1]);
      await runtime.advance(HEAD_START + 1);
      await backend.last('acquire').grant();
      expect(once.outcome).toBe('held');
    });

    it('but does not keep a shutdown waiting', async () => {
      const { backend, ends, services } = await departing('reentrant', { lines: true });
      services.admission.isDraining = true;
      await backend.last('release').answer(heard);
      expect(ends.count).toBe(1);
    });
  });

  it('asks nothing while a lock is being detached', async () => {
    const { backend, queue, ends, lock, arrive } = await held();
    const end = queue.depart(lock);
    expect(queue.holders).toEqual([]);
    const waiter = arrive();
    expect([backend.count('acquire'), ends.count, queue.isAsking]).toEqual([1, 0, true]);
    end();
    expect(backend.owners('acquire').slice(1)).toEqual([waiter.owner]);
  });

  it('asks once more after it, for a caller that found the lock held by the owner that has left', async () => {
    const { backend, services, ends, trier } = lockScene();
    backend.hold('release');
    services.backgroundReleases.release({ key: KEY, type: 'reentrant', owner: 'me:99', leaseTime: 10_000 });
    const once = trier();
    await backend.last('acquire').busy({ holder: 'me:99' });
    expect([once.outcome, backend.count('acquire')]).toEqual([undefined, 1]);
    await backend.last('release').answer(RELEASED);
    expect(backend.count('acquire')).toBe(2);
    await backend.last('acquire').busy({ holder: 'me:99' });
    expect([once.outcome, ends.count]).toEqual(['LockBusyError', 1]);
  });
});

describe('a queue of callers while a release of its process is not sent yet', () => {
  const isWithdrawn = (release: ReleaseRequest) => release.leavesQueue?.() === false;

  const unsent = async (kind: 'reentrant' | 'write' = 'reentrant') => {
    const scene = await held(kind);
    scene.backend.hold('release');
    const released = giveBack(scene.queue, scene.lock);
    const release = scene.backend.last('release').request as ReleaseRequest;
    release.queued?.();
    return { ...scene, release, released };
  };

  it('withdraws it for the caller that arrives, which may leave as any other', async () => {
    const { backend, queue, runtime, release, lock, arrive } = await unsent();
    const next = arrive({ waitTime: ms(1_000) });
    expect([isWithdrawn(release), backend.count('acquire')]).toEqual([true, 1]);
    expect(backend.last('transfer').request).toMatchObject({ from: lock.owner, to: next.owner });
    await runtime.advance(1_001);
    expect(next.outcome).toBe('LockBusyError');
    await backend.last('transfer').grant();
    expect(queue.holders).toEqual([]);
    expect(backend.count('release')).toBe(2);
  });

  it('withdraws it for a caller that has the lock at once, and leaves no timer for its wait', async () => {
    const { backend, queue, runtime, arrive } = lockScene();
    const holder = arrive();
    await backend.last('acquire').grant({ reserved: 64 });
    backend.hold('release');
    void giveBack(queue, lockOf(holder));
    (backend.last('release').request as ReleaseRequest).queued?.();
    const next = arrive({ waitTime: ms(1_000) });
    expect([next.outcome, runtime.keepAliveTimers]).toEqual(['held', 0]);
    expect(queue.holders).toEqual([next.held]);
  });

  it('pings the node while the caller waits for the transfer', async () => {
    const { backend, runtime, arrive } = await unsent();
    backend.withHealth();
    arrive();
    await runtime.advance(3_000);
    expect(backend.pings).toBe(1);
  });

  describe('reserves tokens', () => {
    /** This process has waited for the lock and got it, so its queue is kept for a second after each release. */
    const kept = async () => {
      const scene = await resting();
      const { backend, queue, waiter, arrive } = scene;
      await backend.confirm();
      await backend.last('acquire').grant();
      let lock = lockOf(waiter);
      /** Gives the lock back, and a caller arrives before the release is sent. @returns the tokens of its transfer */
      const follow = async () => {
        backend.hold('release');
        void giveBack(queue, lock);
        (backend.last('release').request as ReleaseRequest).queued?.();
        const next = arrive();
        const { reserve } = backend.last('transfer').request;
        await backend.last('transfer').grant();
        lock = lockOf(next);
        return reserve;
      };
      /** Gives the lock back, and another caller arrives only when the release was answered. */
      const pause = async () => {
        void giveBack(queue, lock);
        await backend.last('release').answer(RELEASED);
        const next = arrive();
        await backend.last('acquire').grant();
        lock = lockOf(next);
      };
      return { ...scene, follow, pause, lock: () => lock };
    };

    it('when two callers in a row came before the release was sent', async () => {
      const { backend, queue, follow, lock, arrive } = await kept();
      expect([await follow(), await follow()]).toEqual([0, 64]);
      queue.lost(lock());
      arrive();
      expect(backend.last('acquire').request.reserve).toBe(64);
    });

    it('but not when a release between them was answered before', async () => {
      const { follow, pause } = await kept();
      expect(await follow()).toBe(0);
      await pause();
      expect([await follow(), await follow()]).toEqual([0, 64]);
    });
  });

  it('leaves it alone if another caller waits already that cannot have the lock without asking', async () => {
    const { release, arrive } = await unsent('write');
    arrive({ type: 'read' });
    arrive({ type: 'write' });
    expect(isWithdrawn(release)).toBe(false);
  });

  it('leaves it alone for a caller that tries once, and while an adoption has reserved the lock', async () => {
    const first = await unsent();
    first.trier();
    expect(isWithdrawn(first.release)).toBe(false);
    const second = await unsent();
    void second.queue.awaitClaim();
    second.arrive();
    expect(isWithdrawn(second.release)).toBe(false);
  });
});

describe('a queue of callers from which one leaves', () => {
  it('asks for the next one only when the request of the first one is answered', async () => {
    const { backend, guest, arrive } = lockScene();
    const { leave } = guest();
    const next = arrive();
    leave();
    expect(backend.count('acquire')).toBe(1);
    await backend.last('acquire').busy();
    await backend.confirm();
    expect(backend.owners('acquire').slice(1)).toEqual([next.owner]);
  });

  it('passes what the first one is granted on to the next one', async () => {
    const { backend, guest, arrive } = lockScene();
    const { leave } = guest();
    const next = arrive();
    leave();
    await backend.last('acquire').grant({ reserved: 64 });
    expect(next.outcome).toBe('held');
  });

  it('gives up the announcement of a writer, so that the readers behind it go on', async () => {
    const { backend, runtime, guest, arrive } = lockScene('write');
    const { waiter, leave } = guest();
    const { owner } = waiter;
    const reader = arrive({ type: 'read' });
    await backend.last('acquire').busy();
    await backend.confirm();
    await backend.last('acquire').busy();
    leave();
    await runtime.settle();
    expect(backend.owners('removeWaiter')).toEqual([owner]);
    expect(backend.owners('acquire').slice(2)).toEqual([reader.owner]);
  });

  it('asks for none of those who are refused together', async () => {
    const { backend, queue, runtime, arrive } = lockScene('write');
    const [writer, reader] = [arrive(), arrive({ type: 'read' })];
    const { owner } = writer;
    await backend.last('acquire').busy();
    await backend.confirm();
    await backend.last('acquire').busy();
    queue.callers.refuseWhere(() => new Error('shutdown'));
    await runtime.settle();
    expect([writer.outcome, reader.outcome]).toEqual(['Error', 'Error']);
    expect([backend.owners('removeWaiter'), backend.count('acquire')]).toEqual([[owner], 2]);
  });

  it('gives up the announcement of a writer at once, although an adoption has reserved the lock', async () => {
    const { backend, queue, runtime, guest, arrive } = lockScene('write');
    const { waiter, leave } = guest();
    const { owner } = waiter;
    arrive({ type: 'read' });
    await backend.last('acquire').busy();
    void queue.awaitClaim();
    leave();
    await runtime.settle();
    expect([backend.owners('removeWaiter'), backend.count('acquire')]).toEqual([[owner], 1]);
  });

  it.each(['busy', 'fail'] as const)(
    'gives up the announcement of a writer only when its request has ended: %s',
    async (end) => {
      const { backend, runtime, guest, arrive } = lockScene('write');
      const { waiter, leave } = guest();
      const { owner } = waiter;
      arrive({ type: 'read' });
      leave();
      await runtime.settle();
      expect(backend.count('removeWaiter')).toBe(0);
      await backend.last('acquire')[end]();
      expect(backend.owners('removeWaiter')).toEqual([owner]);
    },
  );

  it('keeps the announcement for the next writer, which asks under its owner', async () => {
    const { backend, runtime, guest, arrive } = lockScene('write');
    const { waiter, leave } = guest();
    const { owner } = waiter;
    const next = arrive();
    await backend.last('acquire').busy();
    leave();
    await runtime.settle();
    await backend.confirm();
    expect(backend.count('removeWaiter')).toBe(0);
    expect(backend.owners('acquire')).toEqual([owner, owner]);
    await backend.last('acquire').grant();
    expect([next.outcome, lockOf(next).owner]).toEqual(['held', owner]);
  });
});

describe('a queue of callers for which a caller has reserved the lock', () => {
  it('is reserved only if nobody waits for the lock, asks for it or holds it', async () => {
    const { backend, queue, arrive } = lockScene();
    const waiter = arrive();
    expect(queue.claim()).toBe(false);
    await backend.last('acquire').grant();
    expect(queue.claim()).toBe(false);
    await giveBack(queue, lockOf(waiter));
    expect([queue.claim(), queue.isAsking, queue.claim()]).toEqual([true, true, false]);
  });

  it('asks when the reservation has ended without the lock', async () => {
    const { backend, queue, ends, arrive } = lockScene();
    queue.claim();
    arrive();
    expect(backend.count('acquire')).toBe(0);
    queue.unclaim();
    expect([backend.count('acquire'), ends.count]).toEqual([1, 0]);
  });

  it('ends when the reservation has ended and nobody waits', () => {
    const { queue, ends } = lockScene();
    queue.claim();
    queue.unclaim();
    expect([queue.isAsking, ends.count]).toEqual([false, 1]);
  });

  it('waits for the holder when the reservation has ended with the lock', () => {
    const { backend, queue, services, caller, arrive } = lockScene();
    queue.claim();
    const waiter = arrive();
    const { terms } = caller({ fixed: true });
    const lock = queue.fulfil(new Attempt(services, KEY, 'me:77', terms), terms, 12);
    expect(lock).toMatchObject({ owner: 'me:77', token: 12, block: undefined, fixed: true, keeper: queue });
    expect([queue.isAsking, queue.holders, backend.count('acquire')]).toEqual([false, [lock], 0]);
    expect(waiter.outcome).toBeUndefined();
  });

  it('lets readers read beside the reader that had reserved it', () => {
    const { backend, queue, services, caller, arrive } = lockScene('read');
    queue.claim();
    const reader = arrive();
    const { terms } = caller();
    queue.fulfil(new Attempt(services, KEY, 'me:77', terms), terms, 12);
    expect(backend.owners('acquire')).toEqual([reader.owner]);
  });

  it('keeps those that try once waiting, until the reservation takes longer', () => {
    const { queue, arrive, trier } = lockScene();
    queue.claim();
    arrive();
    const once = trier();
    expect(once.outcome).toBeUndefined();
    queue.claimFailed(new BackendError('no connection', 'unavailable', 'unknown'));
    expect(once.error).toMatchObject({
      name: 'LockUnavailableError',
      message: expect.stringContaining('no connection'),
    });
  });

  describe('for an adoption', () => {
    const settled = (promise: Promise<void>) => {
      const state = { is: false };
      void promise.then(() => {
        state.is = true;
      });
      return state;
    };

    it('is reserved at once if no request is under way, although callers wait', async () => {
      const { backend, queue, runtime, waiter } = await resting();
      const claimed = settled(queue.awaitClaim());
      await runtime.settle();
      expect([claimed.is, queue.isAsking]).toEqual([true, true]);
      await backend.confirm();
      expect(backend.count('acquire')).toBe(1);
      queue.unclaim();
      expect(backend.owners('acquire').slice(1)).toEqual([waiter.owner]);
    });

    it('is reserved when the request under way is answered, and nobody else asks', async () => {
      const { backend, queue, runtime, arrive } = lockScene();
      arrive();
      const claims = [settled(queue.awaitClaim()), settled(queue.awaitClaim())];
      await runtime.settle();
      expect(claims.map(({ is }) => is)).toEqual([false, false]);
      await backend.last('acquire').busy({ remaining: 10 });
      expect(claims.map(({ is }) => is)).toEqual([true, true]);
      await runtime.advance(100);
      expect(backend.count('acquire')).toBe(1);
      queue.unclaim();
      expect(backend.count('acquire')).toBe(1);
      queue.unclaim();
      expect(backend.count('acquire')).toBe(2);
    });

    it('asks for those that wait when the adopted lock is released', async () => {
      const { backend, queue, runtime, services, caller, waiter } = await resting();
      await queue.awaitClaim();
      const { terms } = caller();
      const lock = queue.fulfil(new Attempt(services, KEY, 'me:77', terms), terms, 12);
      await runtime.advance(100); // longer than the lock may stay in the process
      void giveBack(queue, lock);
      await runtime.settle();
      expect(backend.owners('release')).toEqual(['me:77']);
      expect(backend.owners('acquire').slice(1)).toEqual([waiter.owner]);
    });

    it('holds a lock for another keeper, which gets it back', () => {
      const { queue, services, caller } = lockScene();
      const { terms } = caller();
      const kept: HeldLock[] = [];
      const keeper: LockKeeper = {
        name: 'order',
        key: KEY,
        giveBack: (lock) => void kept.push(lock) as undefined,
        forget: () => {},
        lost: () => {},
      };
      const lock = queue.adopt(new Attempt(services, KEY, 'me:77', terms), terms, 12, keeper);
      const share = { terms, lose: () => {}, requestEnd: () => {} };
      lock.share(share);
      lock.drop(share, UNAWAITED, services.clock.now());
      expect(kept).toEqual([lock]);
      expect(queue.holders).toEqual([lock]);
    });

    it('is reserved only when all requests are answered', async () => {
      const { backend, queue, arrive } = lockScene('read');
      arrive();
      arrive();
      const claim = settled(queue.awaitClaim());
      await backend.sent('acquire')[0].busy();
      expect(claim.is).toBe(false);
      await backend.sent('acquire')[1].busy();
      expect(claim.is).toBe(true);
    });

    it('is reserved when a release is answered', async () => {
      const { backend, queue, runtime, lock, arrive } = await held();
      backend.hold('release');
      void giveBack(queue, lock);
      const claim = settled(queue.awaitClaim());
      arrive();
      await runtime.settle();
      expect(claim.is).toBe(false);
      await backend.last('release').answer(RELEASED);
      expect(claim.is).toBe(true);
    });
  });
});

describe('a queue of callers for permits', () => {
  const two = { permits: 2 };

  it('asks for as many callers as may hold the lock', async () => {
    const { backend, queue, arrive } = lockScene('permits');
    const waiters = [1, 2, 3].map(() => arrive(two));
    expect(backend.sent('acquire').map(({ request }) => request)).toEqual(
      waiters.slice(0, 2).map(({ owner }) => expect.objectContaining({ owner, permits: 2 })),
    );
    await backend.sent('acquire')[0].grant();
    expect([waiters[0].outcome, backend.count('acquire')]).toEqual(['held', 2]);
    await backend.sent('acquire')[1].grant();
    expect(queue.holders).toHaveLength(2);
    expect([waiters[2].outcome, backend.count('acquire')]).toEqual([undefined, 2]);
  });

  it('asks for tokens if more callers wait than may hold the lock', async () => {
    const { backend, arrive } = lockScene('permits');
    arrive(two);
    arrive(two);
    const [first] = backend.sent('acquire');
    expect(first.request.reserve).toBe(0);
    arrive(two);
    expect(first.request.reserve).toBe(64);
  });

  it('asks for one caller after it found no permit, and for twice as many after each permit that follows', async () => {
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

  it('asks for one of those that a release has made room for, when it is answered', async () => {
    const { backend, queue, lock, arrive } = await held('permits');
    const next = arrive(two);
    await backend.last('acquire').grant();
    backend.hold('release');
    lock.fixed = true;
    queue.forget(lockOf(next));
    void giveBack(queue, lock);
    expect(queue.isAsking).toBe(true);
    const [first, second] = [arrive(two), arrive(two)];
    expect(backend.owners('acquire').slice(2)).toEqual([first.owner]);
    await backend.last('release').answer(RELEASED);
    expect(backend.owners('acquire').slice(2)).toEqual([first.owner, second.owner]);
  });

  it('passes a permit on to a caller that is not asking itself', async () => {
    const { backend, queue, arrive } = lockScene('permits');
    const [holder, asks, rests] = [1, 2, 3].map(() => arrive(two));
    await backend.sent('acquire')[0].grant({ reserved: 64 });
    expect(queue.heir).toBe(rests);
    giveBack(queue, lockOf(holder));
    expect([asks.outcome, rests.outcome]).toEqual([undefined, 'held']);
    expect(queue.heir).toBe(asks);
  });

  it('gives a permit back that nobody inherits who is not asking', async () => {
    const { backend, queue, arrive } = lockScene('permits');
    const [holder, asks] = [arrive(two), arrive(two)];
    await backend.sent('acquire')[0].grant();
    await giveBack(queue, lockOf(holder));
    expect([backend.owners('release'), backend.count('transfer'), asks.outcome]).toEqual([
      [holder.owner],
      0,
      undefined,
    ]);
  });

  it('knows when the first of its requests was sent', async () => {
    const { backend, queue, runtime, arrive } = lockScene('permits');
    await runtime.advance(100);
    arrive(two);
    await runtime.advance(100);
    arrive(two);
    expect(queue.askedAt).toBe(100);
    await backend.sent('acquire')[1].grant();
    expect(queue.askedAt).toBe(100);
  });
});

describe('a queue in which only the newest caller waits', () => {
  it('says how many calls it has superseded, unless the backend has counted them', async () => {
    const { backend, arrive } = lockScene('newest', { lines: true });
    const first = arrive({ newest: true });
    expect(backend.last('acquire').request).toMatchObject({
      type: 'reentrant',
      newest: { superseded: 0, order: undefined },
      waiterTimeout: WAITER_TIMEOUT,
      nonce: undefined,
    });
    const [second, third] = [arrive({ newest: true }), arrive({ newest: true })];
    expect([first.outcome, second.outcome, backend.count('acquire')]).toEqual([undefined, 'LockSupersededError', 1]);
    await backend.last('acquire').busy({ newest: { superseded: 4, order: 9 } });
    expect(first.outcome).toBe('LockSupersededError');
    expect(backend.owners('acquire')).toEqual([first.owner, third.owner]);
    // The first one is counted by the backend when its place is taken over.
    expect(backend.last('acquire').request.newest).toEqual({ superseded: 1, order: undefined });
    expect(backend.owners('removeWaiter')).toEqual([first.owner]);
    await backend.last('acquire').grant({ newest: { superseded: 6, order: 10 } });
    expect(lockOf(third).superseded).toBe(6);
  });

  it('counts itself if the backend does not', async () => {
    const { backend, arrive } = lockScene('newest', { lines: true });
    arrive({ newest: true });
    const third = [arrive({ newest: true }), arrive({ newest: true })][1];
    await backend.last('acquire').busy();
    await backend.last('acquire').grant();
    expect(lockOf(third).superseded).toBe(2);
  });

  it('asks although its process holds the lock, once at a time', async () => {
    const { backend, queue, runtime, arrive } = lockScene('newest', { lines: true });
    const holder = arrive({ newest: true });
    await backend.last('acquire').grant();
    await runtime.advance(100);
    const next = arrive({ newest: true });
    expect(queue.askedAt).toBe(100);
    expect([holder.outcome, backend.owners('acquire')]).toEqual(['held', [holder.owner, next.owner]]);
    arrive({ newest: true });
    expect(backend.count('acquire')).toBe(2);
  });

  it('keeps its place when it asks again', async () => {
    const { backend, arrive } = lockScene('newest', { lines: true });
    const waiter = arrive({ newest: true });
    await backend.last('acquire').busy();
    await backend.confirm();
    await backend.last('acquire').busy();
    await backend.tell('line');
    expect(backend.owners('acquire')).toEqual([waiter.owner, waiter.owner, waiter.owner]);
    expect(backend.count('removeWaiter')).toBe(0);
  });

  it('refuses a caller whose place was taken by another process, and forgets the place', async () => {
    const { backend, ends, arrive } = lockScene('newest', { lines: true });
    const waiter = arrive({ newest: true });
    await backend.last('acquire').busy({ superseded: true });
    expect([waiter.outcome, ends.count, backend.count('removeWaiter')]).toEqual(['LockSupersededError', 1, 0]);
  });

  it('asks for the newest caller at once, but not during an outage', async () => {
    const { backend, runtime, arrive } = lockScene('newest', { lines: true });
    const first = arrive({ newest: true });
    await backend.last('acquire').busy({ remaining: 5_000 });
    const second = arrive({ newest: true });
    expect([first.outcome, backend.count('acquire')]).toEqual(['LockSupersededError', 2]);
    await backend.last('acquire').fail();
    const third = arrive({ newest: true });
    expect([second.outcome, backend.count('acquire')]).toEqual(['LockSupersededError', 2]);
    await runtime.advance(51);
    expect(backend.owners('acquire').slice(2)).toEqual([third.owner]);
  });

  it('supersedes nobody without a line of places, but in its own process', async () => {
    const { backend, arrive } = lockScene('newest');
    arrive({ newest: true });
    expect(backend.last('acquire').request.waiterTimeout).toBe(0);
  });
});

describe('a queue of callers that waits in line', () => {
  it('has no place before it listens, and enters the line then, and again with each request', async () => {
    const { backend, placed, waiter } = await inLine();
    expect(backend.types).toEqual(['line']);
    const [first, second] = backend.sent('acquire');
    expect([first.request.waiterTimeout, first.request.nonce]).toEqual([0, undefined]);
    expect(second).toBe(placed);
    expect([placed.request.waiterTimeout, placed.request.owner]).toEqual([WAITER_TIMEOUT, waiter.owner]);
    expect(placed.request.nonce).toEqual(expect.any(String));
    await backend.tell('line', { kind: 'message', owner: waiter.owner });
    expect(backend.last('acquire').request.waiterTimeout).toBe(WAITER_TIMEOUT);
    expect(backend.last('acquire').request.nonce).not.toBe(placed.request.nonce);
  });

  it('has no place while it does not listen yet, even if the lease of the holder has ended', async () => {
    const { backend, runtime, arrive } = lockScene('reentrant', { lines: true });
    arrive();
    await backend.last('acquire').busy({ remaining: 10 });
    await runtime.advance(12);
    expect([backend.count('acquire'), backend.last('acquire').request.waiterTimeout]).toEqual([2, 0]);
  });

  it('asks at once after a message, because only it is meant', async () => {
    const { backend } = await inLine();
    await backend.tell('line');
    expect(backend.count('acquire')).toBe(3);
  });

  it('ignores messages for places of other queues of its process', async () => {
    const { backend, waiter, placed } = await inLine();
    const { grant } = grantTo(placed);
    await backend.tell('line', { kind: 'message', owner: 'me:55' });
    await backend.tell('line', { kind: 'message', owner: 'me:55', lock: 'granted', grant });
    expect([backend.requests.length, waiter.outcome]).toEqual([2, undefined]);
    await backend.tell('line', { kind: 'message', owner: waiter.owner });
    expect(backend.count('acquire')).toBe(3);
    await backend.tell('line', { kind: 'message', owner: 'me:55' });
    await backend.last('acquire').busy();
    expect(backend.count('acquire')).toBe(3);
  });

  it('leaves a place that it has given up once more when a message is for that, and asks, because it has no other one', async () => {
    const { backend, waiter, placed } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').fail('unknown');
    expect(waiter.owner).not.toBe(placed.request.owner);
    const removed = backend.count('removeWaiter');
    await backend.tell('line', { kind: 'message', owner: placed.request.owner });
    expect(backend.owners('removeWaiter').slice(removed)).toEqual([placed.request.owner]);
    expect(backend.owners('acquire').slice(3)).toEqual([waiter.owner]);
  });

  it('keeps its place as long as it waits, and asks at once if it was lost', async () => {
    const { backend, runtime, waiter } = await inLine();
    backend.hold('refreshWaiters');
    await runtime.advance(WAITER_TIMEOUT / 3);
    const [refreshed] = backend.last('refreshWaiters').request;
    expect(refreshed).toEqual({ key: KEY, type: 'reentrant', owner: waiter.owner, nonce: expect.any(String) });
    expect(refreshed.nonce).not.toBe(backend.last('acquire').request.nonce);
    await backend.last('refreshWaiters').answer([false]);
    expect(backend.count('acquire')).toBe(3);
  });

  it('sends no heartbeat once it has the lock', async () => {
    const { backend, runtime } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').grant();
    await runtime.advance(WAITER_TIMEOUT);
    expect([backend.count('refreshWaiters'), backend.count('removeWaiter')]).toEqual([0, 0]);
  });

  it('leaves the line, and stops, with its last caller', async () => {
    const scene = lockScene('reentrant', { lines: true });
    const { backend, runtime, ends, guest } = scene;
    const { waiter, leave } = guest();
    const { owner } = waiter;
    await backend.last('acquire').busy();
    await backend.confirm();
    await backend.last('acquire').busy({ remaining: 5_000 });
    leave();
    await runtime.settle();
    expect([backend.owners('removeWaiter'), backend.types, runtime.timers]).toEqual([[owner], [], 0]);
    expect(ends.count).toBe(1);
  });

  it('lets the next caller ask under the owner of its place when the first one leaves', async () => {
    const { backend, runtime, guest, arrive } = lockScene('reentrant', { lines: true });
    const { waiter, leave } = guest();
    const next = arrive();
    await backend.last('acquire').busy();
    await backend.confirm();
    await backend.last('acquire').busy();
    const { owner } = waiter;
    leave();
    await runtime.settle();
    await backend.tell('line');
    expect([backend.last('acquire').request.owner, next.owner]).toEqual([owner, owner]);
    expect(waiter.owner).not.toBe(owner);
    expect(backend.count('removeWaiter')).toBe(0);
  });

  it('asks under another owner once its place was released by force, unless a request is under way', async () => {
    const { backend, queue, waiter, placed } = await inLine();
    queue.removed(['me:55']);
    expect(backend.count('acquire')).toBe(2);
    queue.removed([placed.request.owner]);
    expect(backend.count('acquire')).toBe(3);
    expect(waiter.owner).not.toBe(placed.request.owner);
    expect(backend.last('acquire').request.owner).toBe(waiter.owner);
    queue.removed([waiter.owner]);
    await backend.last('acquire').busy();
    expect(backend.count('acquire')).toBe(3);
  });

  it('gives up a place when the lock comes in another way', async () => {
    const { backend, queue, services, caller, placed } = await inLine();
    const { terms } = caller();
    queue.adopt(new Attempt(services, KEY, 'me:77', terms), terms, 12, queue);
    expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
  });

  it('releases its place, too, if a request under it got no answer, and waits under another owner', async () => {
    const { backend, runtime, waiter, placed } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').fail('unknown');
    expect(backend.owners('release')).toEqual([placed.request.owner]);
    expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
    await runtime.advance(51);
    expect(backend.last('acquire').request).toMatchObject({ owner: waiter.owner, waiterTimeout: WAITER_TIMEOUT });
    expect(waiter.owner).not.toBe(placed.request.owner);
  });

  it('keeps a place whose owner was released by the backend until the next request is answered', async () => {
    const { backend, waiter, placed } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').busy({ spent: true });
    await backend.tell('line');
    expect(waiter.owner).not.toBe(placed.request.owner);
    expect([backend.last('acquire').request.owner, backend.count('removeWaiter')]).toEqual([waiter.owner, 0]);
    await backend.last('acquire').busy();
    expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
    await backend.tell('line');
    await backend.last('acquire').busy();
    expect(backend.count('removeWaiter')).toBe(1);
  });

  it('asks again at once if the answer names its own place as the holder', async () => {
    const { backend, placed } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').busy({ holder: placed.request.owner });
    expect(backend.count('acquire')).toBe(4);
  });

  it('asks again at once if its place was given up with a busy answer, because it would hear of nothing', async () => {
    const { backend, waiter, placed } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').busy({ validUntil: 100 });
    expect(backend.owners('release')).toEqual([placed.request.owner]);
    expect(backend.count('acquire')).toBe(4);
    expect(backend.last('acquire').request).toMatchObject({ owner: waiter.owner, waiterTimeout: WAITER_TIMEOUT });
  });

  it('waits without a line if the backend has lost the right to it', async () => {
    const { backend, runtime, placed } = await inLine();
    backend.line = undefined;
    await backend.tell('line');
    expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
    expect(backend.last('acquire').request.waiterTimeout).toBe(0);
    await backend.last('acquire').busy();
    expect(backend.types).toEqual(['reentrant']);
    await backend.tell('reentrant');
    await runtime.advance(12);
    expect(backend.count('acquire')).toBe(4);
  });

  it.each(['reentrant', 'newest'] as const)(
    'enters a line that appears only when it listens there: %s',
    async (kind) => {
      const { backend, arrive } = lockScene(kind);
      arrive({ newest: kind === 'newest' });
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

  it('leaves the line as soon as it learns that it is gone', async () => {
    const { backend, placed } = await inLine();
    await backend.tell('line');
    backend.line = undefined;
    await backend.last('acquire').fail();
    expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
    expect(backend.types).toEqual([]);
  });

  it('listens beside the line for the release of a holder that does not serve it', async () => {
    const { backend } = await inLine();
    await backend.tell('line');
    await backend.last('acquire').busy({ heldAs: 'reentrant' });
    expect(backend.types).toEqual(['line', 'reentrant']);
    await backend.tell('reentrant');
    expect(backend.count('acquire')).toBe(4);
  });

  describe('for permits', () => {
    it('leaves the line while it holds some and nobody waits', async () => {
      const { backend, queue, runtime, guest, arrive } = lockScene('permits', { lines: true });
      arrive({ permits: 2 });
      await backend.last('acquire').grant();
      const { waiter, leave } = guest({ permits: 2 });
      await backend.last('acquire').busy();
      await backend.confirm();
      await backend.last('acquire').busy({ remaining: 5_000 });
      const { owner } = waiter;
      leave();
      await runtime.settle();
      expect(backend.owners('removeWaiter')).toEqual([owner]);
      expect(queue.isAsking).toBe(false);
      arrive({ permits: 2 });
      expect(backend.count('acquire')).toBe(4);
    });

    it.each([2, 3])('keeps a place that lets no more hold the lock than the next caller: %i', async (permits) => {
      const { backend, runtime, guest, arrive } = lockScene('permits', { lines: true });
      const { waiter, leave } = guest({ permits: 2 });
      arrive({ permits });
      for (const sent of backend.sent('acquire')) await sent.busy();
      await backend.confirm();
      await backend.last('acquire').busy();
      const { owner } = waiter;
      leave();
      await runtime.settle();
      await backend.tell('line');
      expect([backend.count('removeWaiter'), backend.last('acquire').request.owner]).toEqual([0, owner]);
    });

    it('transfers a permit to another owner than that of its place, and leaves the line with its last caller', async () => {
      const { backend, queue, arrive } = lockScene('permits', { lines: true });
      const holder = arrive({ permits: 2 });
      await backend.last('acquire').grant();
      const next = arrive({ permits: 2 });
      await backend.last('acquire').busy();
      await backend.confirm();
      const placed = backend.last('acquire');
      await placed.busy();
      void giveBack(queue, lockOf(holder));
      const { request } = backend.last('transfer');
      expect(request.to).not.toBe(placed.request.owner);
      await backend.last('transfer').grant();
      expect([lockOf(next).owner, backend.owners('removeWaiter')]).toEqual([request.to, [placed.request.owner]]);
    });

    it('gives up such a place also if the one before has inherited a permit', async () => {
      const { backend, queue, arrive } = lockScene('permits', { lines: true });
      const holder = arrive({ permits: 3 });
      await backend.last('acquire').grant({ reserved: 64 });
      const wide = arrive({ permits: 3 });
      await backend.last('acquire').busy();
      await backend.confirm();
      const placed = backend.last('acquire');
      await placed.busy();
      const narrow = arrive({ permits: 2 });
      giveBack(queue, lockOf(holder));
      expect([wide.outcome, narrow.outcome]).toEqual(['held', undefined]);
      await backend.tell('line');
      expect(backend.last('acquire').request.owner).toBe(narrow.owner);
      expect(narrow.owner).not.toBe(placed.request.owner);
      expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
    });

    it('leaves the line when its last caller has inherited a permit, and asks for the next one at once', async () => {
      const { backend, queue, arrive } = lockScene('permits', { lines: true });
      const holder = arrive({ permits: 2 });
      await backend.last('acquire').grant({ reserved: 64 });
      const heir = arrive({ permits: 2 });
      await backend.last('acquire').busy();
      await backend.confirm();
      const placed = backend.last('acquire');
      await placed.busy({ remaining: 5_000 });
      giveBack(queue, lockOf(holder));
      expect([heir.outcome, backend.owners('removeWaiter')]).toEqual(['held', [placed.request.owner]]);
      arrive({ permits: 2 });
      expect(backend.count('acquire')).toBe(4);
    });

    it('leaves the line also when its last caller inherits a permit only in the next turn of the event loop', async () => {
      const { backend, queue, runtime, arrive } = lockScene('permits', { lines: true });
      const three = { permits: 3 };
      let holder = arrive({ permits: 2 });
      arrive({ permits: 2 });
      for (const sent of backend.sent('acquire')) await sent.grant({ reserved: 1_000 });
      let last = arrive(three);
      await backend.last('acquire').busy();
      await backend.confirm();
      const placed = backend.last('acquire');
      await placed.busy({ remaining: 20_000 });
      for (let handOff = 1; handOff < 256; handOff++) {
        const next = last;
        last = arrive(three);
        void giveBack(queue, lockOf(holder));
        holder = next;
      }
      void giveBack(queue, lockOf(holder));
      expect([last.outcome, backend.count('removeWaiter')]).toEqual([undefined, 0]);
      await runtime.advance(1);
      expect(last.outcome).toBe('held');
      expect(backend.owners('removeWaiter')).toEqual([placed.request.owner]);
      expect(runtime.keepAliveTimers).toBe(0);
    });

    it('gives up a place that lets more hold the lock than the next caller does', async () => {
      const { backend, runtime, guest, arrive } = lockScene('permits', { lines: true });
      const { waiter, leave } = guest({ permits: 3 });
      const next = arrive({ permits: 2 });
      for (const sent of backend.sent('acquire')) await sent.busy();
      await backend.confirm();
      await backend.last('acquire').busy();
      const { owner } = waiter;
      leave();
      await runtime.settle();
      expect(backend.owners('removeWaiter')).toEqual([owner]);
      expect(backend.last('acquire').request.owner).toBe(next.owner);
      expect(next.owner).not.toBe(owner);
    });

    it.each(['grant', 'busy'] as const)(
      'gives up a place under which it asks only when the request has ended: %s',
      async (answer) => {
        const abort = new AbortController();
        const { signal } = abort;
        const three = { permits: 3 };
        const { backend, runtime, arrive } = await inLine('permits', { ...three, signal });
        arrive({ ...three, signal });
        arrive({ permits: 2, signal });
        const narrow = arrive({ permits: 2 });
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
        expect(backend.last('acquire').request.owner).toBe(narrow.owner);
        expect(narrow.owner).not.toBe(asked.request.owner);
      },
    );

    it.each(['asks', 'is refused'])(
      'gives up a place under which it asks only when the request has ended, if the line is lost when another caller %s',
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
    it('asks for one reader under the place, and the others follow it past the line', async () => {
      const { backend, arrive, waiter } = await inLine('read', { type: 'read' });
      const [second, third] = [arrive({ type: 'read' }), arrive({ type: 'read' })];
      arrive({ type: 'write' });
      const behind = arrive({ type: 'read' });
      await backend.tell('line');
      expect(backend.owners('acquire').slice(2)).toEqual([waiter.owner]);
      await backend.last('acquire').grant();
      expect(backend.owners('acquire').slice(3)).toEqual([second.owner, third.owner]);
      for (const { request } of backend.sent('acquire').slice(3))
        expect(request).toMatchObject({ pastLine: true, waiterTimeout: 0 });
      expect([behind.follows, second.follows]).toEqual([false, true]);
      await backend.sent('acquire')[3].busy();
      expect(second.follows).toBe(false);
    });

    it('lets nobody go past the line behind a writer that has left before it was granted the lock', async () => {
      const { backend, runtime, guest, arrive } = lockScene('write', { lines: true });
      const { leave } = guest();
      await backend.last('acquire').busy();
      await backend.confirm();
      const reader = arrive({ type: 'read' });
      leave();
      await runtime.settle();
      await backend.last('acquire').grant();
      expect(backend.last('acquire').request).toMatchObject({ owner: reader.owner, pastLine: false });
    });

    it('lets nobody go past the line with a reader that has no place, or behind a writer', async () => {
      const { backend, runtime, arrive } = lockScene('read', { lines: true });
      arrive();
      arrive();
      await backend.sent('acquire')[0].grant();
      await backend.sent('acquire')[1].fail();
      await runtime.advance(51);
      expect(backend.last('acquire').request.pastLine).toBe(false);

      const writing = await inLine('write', { type: 'write' });
      const reader = writing.arrive({ type: 'read' });
      await writing.backend.tell('line');
      await writing.backend.last('acquire').grant();
      await giveBack(writing.queue, lockOf(writing.waiter));
      expect(writing.backend.last('acquire').request).toMatchObject({ owner: reader.owner, pastLine: false });
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

    it('lets one of them enter the line when they have asked beside one that tries once', async () => {
      const { backend, queue, waiter, arrive, trier, runtime } = await inLine('read', { type: 'read' });
      await backend.tell('line');
      await backend.last('acquire').grant();
      await giveBack(queue, lockOf(waiter));
      const before = backend.count('acquire');
      const once = trier({ type: 'read' });
      const first = arrive({ type: 'read' });
      arrive({ type: 'read' });
      await refuseAll({ backend, runtime });
      expect(once.outcome).toBe('LockBusyError');
      expect(backend.owners('acquire').slice(before)).toEqual([once.owner, first.owner]);
      expect(backend.last('acquire').request.waiterTimeout).toBe(WAITER_TIMEOUT);
    });

    it('lets one of them enter the line when the writer in front has left with another caller', async () => {
      const abort = new AbortController();
      const { signal } = abort;
      const { backend, arrive, runtime } = await inLine('read', { type: 'write', signal });
      await backend.tell('line');
      arrive({ type: 'write', signal });
      const first = arrive({ type: 'read' });
      arrive({ type: 'read' });
      const before = backend.count('acquire');
      abort.abort();
      await refuseAll({ backend, runtime });
      expect(backend.owners('acquire').slice(before)).toEqual([first.owner]);
      expect(backend.last('acquire').request.waiterTimeout).toBe(WAITER_TIMEOUT);
    });
  });
});

describe('a queue of callers that wait in the backend', () => {
  const BUSY: Busy = { acquired: false, remaining: 5_000, holder: 'other:1' };
  const blocked = (type: Parameters<typeof lockScene>[0] = 'reentrant') => {
    const scene = lockScene(type, { blocking: true });
    const guest = scene.guest();
    return { ...scene, first: guest, sent: scene.backend.last('acquire') };
  };

  it('ends the wait of the request there when nobody waits here any more', async () => {
    const { backend, ends, first, sent } = blocked();
    first.leave();
    expect(backend.stopped).toEqual([sent.request]);
    await sent.busy();
    expect([backend.heard.length, ends.count]).toEqual([0, 1]);
  });

  it('keeps the request while others wait', () => {
    const { backend, first, arrive } = blocked();
    arrive();
    first.leave();
    expect(backend.stopped).toEqual([]);
  });

  it('asks without waiting for a caller that tries once', () => {
    const { backend, trier } = lockScene('reentrant', { blocking: true });
    let waited = 0;
    const { acquire } = backend.blocking as NonNullable<typeof backend.blocking>;
    Object.assign(backend.blocking as object, {
      acquire: (...call: Parameters<typeof acquire>) => {
        waited++;
        return acquire(...call);
      },
    });
    trier();
    expect([waited, backend.count('acquire')]).toEqual([0, 1]);
  });

  it('is undecided until the backend says that the request waits for the lock', async () => {
    const { queue, runtime, sent, arrive, trier } = blocked();
    expect(queue.isUndecided).toBe(true);
    const once = trier();
    expect(once.outcome).toBeUndefined();
    sent.onWait(BUSY);
    expect([queue.isUndecided, once.outcome]).toEqual([false, 'LockBusyError']);
    expect(trier().outcome).toBe('LockBusyError');
    const late = arrive({ waitTime: ms(1_000) });
    await runtime.advance(1_001);
    expect(late.error).toMatchObject({ name: 'LockBusyError', holder: 'other:1', remainingTime: 4_000 });
    await sent.busy();
    expect(queue.isUndecided).toBe(true); // asks for itself
  });

  it('is decided on a backend in which nobody waits', () => {
    const { queue, arrive } = lockScene();
    arrive();
    expect(queue.isUndecided).toBe(false);
    expect(lockScene('reentrant', { blocking: true }).queue.isUndecided).toBe(false);
  });

  it('refuses those that must not wait when the backend waits for a connection, and keeps the others', () => {
    const { queue, sent, first, arrive, trier, caller } = blocked();
    const once = trier();
    const scoped = caller();
    scoped.scoped = true;
    queue.enqueue(scoped);
    const patient = arrive();
    sent.onWait(new BackendError('no connection', 'unavailable', 'refused'));
    expect([once.outcome, scoped.outcome]).toEqual(['LockUnavailableError', 'LockUnavailableError']);
    expect(once.error?.message).toContain('no connection');
    expect([first.waiter.outcome, patient.outcome, queue.isUndecided]).toEqual([undefined, undefined, true]);
  });

  it('lets the record of the holder be read if any of them gives up soon', () => {
    const looked: string[] = [];
    for (const givesUp of [false, true]) {
      const { services, backend, arrive } = lockScene('reentrant', { blocking: true });
      services.holders.expect = (owner) => void looked.push(`${owner} ${givesUp}`);
      arrive();
      arrive(givesUp ? { waitTime: ms(500) } : {});
      backend.last('acquire').onWait(BUSY);
    }
    expect(looked).toEqual(['other:1 true']);
  });
});

describe('a queue of callers that rest', () => {
  /** How often the node is pinged in three seconds, because somebody rests. */
  const pings = async ({ backend, runtime }: Scene) => {
    await runtime.advance(3_000);
    return backend.pings;
  };

  it('is not pinged for the only caller while its request is unanswered', async () => {
    const scene = lockScene('reentrant', { health: true });
    scene.arrive();
    expect(await pings(scene)).toBe(0);
  });

  it('is pinged if others wait behind the one that asks, or behind a holder of this process', async () => {
    const scene = lockScene('reentrant', { health: true });
    scene.arrive();
    scene.arrive();
    expect(await pings(scene)).toBe(1);
    const other = await held('reentrant', { health: true });
    other.arrive();
    expect(await pings(other as unknown as Scene)).toBe(1);
  });

  it('is pinged if another process holds the lock', async () => {
    const scene = await resting('reentrant', { health: true });
    expect(await pings(scene)).toBe(1);
  });

  it('leaves no timer when all of them were served, and have given the lock back', async () => {
    const { backend, queue, runtime, lock, arrive } = await held('reentrant', { health: true });
    const next = arrive();
    const { timers } = runtime;
    void giveBack(queue, lock);
    await backend.last('transfer').grant();
    await giveBack(queue, lockOf(next));
    await runtime.settle();
    expect(timers).toBeGreaterThan(1);
    await runtime.advance(1_500); // the watchdog finds nothing to do
    expect(runtime.timers).toBe(0);
  });

  it('is pinged if its request waits in the backend', async () => {
    const scene = lockScene('reentrant', { health: true, blocking: true });
    scene.arrive();
    scene.backend.last('acquire').onWait({ acquired: false, remaining: -1, holder: 'other:1' });
    expect(await pings(scene)).toBe(1);
  });

  it('keeps no process alive by callers whose waitTime is unlimited', async () => {
    const { runtime, arrive } = lockScene();
    arrive({ waitTime: ms(1_000) });
    expect(runtime.keepAliveTimers).toBe(1);
    const forever = lockScene();
    forever.arrive();
    expect(forever.runtime.keepAliveTimers).toBe(0);
  });
});
