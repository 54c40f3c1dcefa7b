import { ms } from '../../support/lock-world.js';
import { KEY, leaseOf, lockScene, resting, WAITER_TIMEOUT } from './scripted-scene.js';

describe('the callers of a lock in one process ask the backend', () => {
  it.each([
    ['reentrant', 0],
    ['fenced', 0],
    ['read', 0],
    ['write', WAITER_TIMEOUT],
  ] as const)('for the first of them, without tokens for others: type %s', (type, waiterTimeout) => {
    const { backend, arrive } = lockScene(type);
    arrive();
    expect(backend.count('acquire')).toBe(1);
    const { request } = backend.last('acquire');
    expect(request).toMatchObject({ key: KEY, type, owner: 'me:1', reserve: 0, waiterTimeout, pastLine: false });
    expect(request.newest).toBeUndefined();
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
    expect(backend.sent('acquire').map(({ request }) => [request.owner, request.reserve])).toEqual([
      ['me:1', 0],
      ['me:2', 0],
    ]);
    await backend.sent('acquire')[0].grant();
    expect([first.outcome, second.outcome, backend.count('acquire')]).toEqual(['held', undefined, 2]);
    await backend.sent('acquire')[1].grant();
    expect([second.outcome, backend.count('acquire')]).toEqual(['held', 2]);
  });

  it('for readers that arrive when the last one that asks has left', async () => {
    const { backend, runtime, arrive, guest } = lockScene('read');
    arrive();
    const { leave } = guest();
    leave();
    await runtime.settle();
    arrive();
    arrive();
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:2', 'me:3', 'me:4']);
  });

  it('for a reader again whose lock was removed by force, although those behind it ask', async () => {
    const { backend, force, arrive } = lockScene('read');
    const first = arrive();
    arrive();
    await force('me:1');
    await backend.sent('acquire')[0].grant();
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:2', 'me:3']);
    await backend.sent('acquire')[2].grant();
    expect(first.lease?.owner).toBe('me:3');
  });

  it('for a writer only when the readers of its process have left', async () => {
    const { backend, arrive } = lockScene('read');
    const readers = [arrive(), arrive()];
    for (const sent of backend.sent('acquire')) await sent.grant();
    const writer = arrive({ type: 'write' });
    await leaseOf(readers[0]).release();
    expect(backend.count('acquire')).toBe(2);
    await leaseOf(readers[1]).release();
    expect(backend.count('acquire')).toBe(3);
    await backend.last('acquire').grant();
    expect(writer.outcome).toBe('held');
  });

  it('again under another owner when their process has released the lock by force meanwhile', async () => {
    const { backend, force, arrive } = lockScene();
    const caller = arrive();
    await force('me:1');
    await backend.last('acquire').grant();
    expect(backend.owners('release')).toEqual(['me:1']);
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:2']);
    expect(caller.outcome).toBeUndefined();
  });

  it('for the next one after the first one has failed for good', async () => {
    const { backend, arrive } = lockScene();
    const [first, second] = [arrive(), arrive()];
    await backend.last('acquire').fail('refused', 'denied');
    expect([first.outcome, second.outcome]).toEqual(['LockUnavailableError', undefined]);
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:2']);
  });
});

describe('callers of a lock that got no answer', () => {
  it('ask again after a pause, as another owner if the lock may be held, and report that once', async () => {
    const { backend, runtime, logger, arrive } = lockScene();
    arrive();
    await backend.last('acquire').fail('unknown');
    expect(backend.count('acquire')).toBe(1);
    expect([backend.owners('release'), backend.owners('removeWaiter')]).toEqual([['me:1'], []]);
    await runtime.advance(51);
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:2']);
    await backend.last('acquire').fail();
    await runtime.advance(101);
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:2', 'me:2']);
    expect(logger.errors).toEqual(["The lock 'order' could not be acquired: no connection"]);
  });

  it('are refused if they try once, but not the others', async () => {
    const { backend, runtime, arrive, trier } = lockScene();
    const caller = arrive();
    const once = trier();
    await backend.last('acquire').fail();
    expect([caller.outcome, once.outcome]).toEqual([undefined, 'LockUnavailableError']);
    await runtime.advance(51);
    expect(backend.count('acquire')).toBe(2);
  });

  it('do not pause when nobody waits any more', async () => {
    const { backend, runtime, isIdle, trier } = lockScene();
    trier();
    await backend.last('acquire').fail();
    expect([runtime.timers, isIdle(), backend.heard.length]).toEqual([0, true, 0]);
  });

  it('do not pause because another reader, which tried once, got no answer', async () => {
    const { backend, arrive, trier } = lockScene('read');
    arrive();
    await backend.last('acquire').grant();
    const once = trier();
    await backend.last('acquire').fail();
    expect(once.outcome).toBe('LockUnavailableError');
    arrive();
    expect(backend.count('acquire')).toBe(3);
  });

  it('do not pause after an error that is no outage', async () => {
    const { backend, runtime, logger, arrive } = lockScene();
    arrive();
    arrive();
    await backend.last('acquire').fail('refused', 'closed');
    expect(logger.errors).toEqual([]);
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:2']);
    expect(runtime.keepAliveTimers).toBe(0);
  });

  it('are refused as unavailable until there is an answer, and then as busy', async () => {
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

  it('have an answer even if that came with a forced release', async () => {
    const { backend, force, runtime, arrive } = lockScene();
    const caller = arrive({ waitTime: ms(300) });
    await backend.last('acquire').fail();
    await runtime.advance(51);
    await force('me:1');
    await backend.last('acquire').grant();
    await runtime.advance(300);
    expect(caller.outcome).toBe('LockBusyError');
  });
});

describe('callers of a lock behind another process', () => {
  it('listen, ask once more then, and after each message, but not in between', async () => {
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

  it('ask within 10 ms of a message, because others are woken, too', async () => {
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

  it('ask when the lease of the holder ends', async () => {
    const { backend, runtime, arrive } = lockScene();
    arrive();
    await backend.last('acquire').busy({ remaining: 2_000 });
    await runtime.advance(2_000);
    expect(backend.count('acquire')).toBe(1);
    await runtime.advance(2);
    expect(backend.count('acquire')).toBe(2);
  });

  it('ask right after a lease that ends now, and pause longer after each request without an answer', async () => {
    const { backend, runtime, arrive } = lockScene();
    arrive();
    await backend.last('acquire').busy({ remaining: 0 });
    await runtime.advance(2);
    expect(backend.count('acquire')).toBe(2);
    const pause = async () => {
      const before = backend.count('acquire');
      await backend.last('acquire').fail();
      const start = runtime.monotonic();
      while (backend.count('acquire') === before) await runtime.advance(1);
      return runtime.monotonic() - start;
    };
    const pauses = [await pause(), await pause(), await pause(), await pause()];
    expect(pauses[0]).toBeLessThanOrEqual(50);
    expect(pauses[3]).toBeGreaterThanOrEqual(200);
    await backend.last('acquire').busy();
    await backend.tell('reentrant');
    await runtime.advance(12);
    expect(await pause()).toBeLessThanOrEqual(50);
  });

  it('ask at once when messages may have been lost, and once more after a message during a request', async () => {
    const { backend } = await resting();
    await backend.confirm();
    await backend.tell('reentrant', { kind: 'resync' });
    expect(backend.count('acquire')).toBe(2);
    await backend.last('acquire').busy();
    expect(backend.count('acquire')).toBe(3);
    await backend.last('acquire').busy();
    expect(backend.count('acquire')).toBe(3);
    await backend.tell('reentrant', { kind: 'resync' });
    expect(backend.count('acquire')).toBe(4);
  });

  it('listen for the release of a holder of another type as well', async () => {
    const { backend, arrive } = lockScene();
    arrive();
    await backend.last('acquire').busy({ heldAs: 'write' });
    expect([...backend.types].sort()).toEqual(['reentrant', 'write']);
    await backend.tell('write');
    expect(backend.count('acquire')).toBe(2);
    await backend.last('acquire').busy();
    expect(backend.types).toEqual(['reentrant']);
  });

  it('ask again at once if a message came after a request was sent, although another request is newer', async () => {
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

  it('do not listen for one that tried once', async () => {
    const { backend, isIdle, runtime, trier } = lockScene();
    const once = trier();
    await backend.last('acquire').busy();
    expect([once.outcome, backend.heard.length, runtime.timers, isIdle()]).toEqual(['LockBusyError', 0, 0, true]);
  });

  it('are refused if they try once when that is known, or known already', async () => {
    const { backend, runtime, arrive, trier } = lockScene();
    const first = arrive();
    const once = trier();
    await runtime.settle();
    expect(once.outcome).toBeUndefined();
    await backend.last('acquire').busy();
    const late = trier();
    await runtime.settle();
    expect([first, once, late].map(({ outcome }) => outcome)).toEqual([undefined, 'LockBusyError', 'LockBusyError']);
    expect(backend.count('acquire')).toBe(1);
  });

  it('are refused if they try once when another caller of their process has got the lock', async () => {
    const { backend, arrive, trier } = lockScene();
    const first = arrive();
    const once = trier();
    await backend.last('acquire').grant();
    expect([first.outcome, once.outcome]).toEqual(['held', 'LockBusyError']);
  });

  it.each(['busy', 'grant'] as const)('are refused if they try once only by their own request: %s', async (answer) => {
    const { backend, trier } = lockScene('read');
    const [first, second] = [trier(), trier()];
    await backend.sent('acquire')[0].busy();
    expect([first.outcome, second.outcome]).toEqual(['LockBusyError', undefined]);
    await backend.sent('acquire')[1][answer]();
    expect(second.outcome).toBe(answer === 'busy' ? 'LockBusyError' : 'held');
  });

  it('are refused if they try once while a reader of their process rests, although another one asks', async () => {
    const { backend, runtime, arrive, trier } = lockScene('read');
    arrive();
    arrive();
    await backend.sent('acquire')[0].busy();
    const once = trier();
    await runtime.settle();
    expect(once.outcome).toBe('LockBusyError');
  });

  it('are refused if they try to write once while their process reads, although another reader asks', async () => {
    const { backend, runtime, arrive, trier } = lockScene('read');
    arrive();
    await backend.last('acquire').grant();
    arrive();
    const once = trier({ type: 'write' });
    await runtime.settle();
    expect(once.outcome).toBe('LockBusyError');
  });

  it.each(['permits', 'read'] as const)(
    'ask at once when the one that rested beside a holder has left: %s',
    async (type) => {
      const { backend, runtime, arrive, guest } = lockScene(type);
      arrive();
      await backend.last('acquire').grant();
      const { leave } = guest();
      await backend.last('acquire').busy({ remaining: 5_000 });
      leave();
      await runtime.settle();
      expect(runtime.keepAliveTimers).toBe(0);
      arrive();
      expect(backend.count('acquire')).toBe(3);
    },
  );

  it('leave no subscription and no timer when all have left', async () => {
    const { backend, isIdle, runtime, guest } = lockScene();
    const { leave } = guest();
    await backend.last('acquire').busy({ remaining: 5_000 });
    leave();
    await runtime.settle();
    expect([backend.types, runtime.timers, isIdle()]).toEqual([[], 0, true]);
  });

  it('listen on for a second after the last one, which had waited, got the lock and released it', async () => {
    const { backend, isIdle, runtime, caller } = await resting();
    await backend.confirm();
    await backend.last('acquire').grant();
    await leaseOf(caller).release();
    await runtime.advance(900);
    expect([backend.types, isIdle()]).toEqual([['reentrant'], false]);
    await runtime.advance(200);
    expect([backend.types, isIdle()]).toEqual([[], true]);
  });

  it('do not listen on during shutdown', async () => {
    const { backend, engine, isIdle, caller } = await resting();
    await backend.confirm();
    await backend.last('acquire').grant();
    void engine.drain();
    await leaseOf(caller).release();
    expect([backend.types, isIdle()]).toEqual([[], true]);
  });

  it('ask as another owner if the backend has released the one that found the lock busy', async () => {
    const { backend, arrive } = lockScene();
    arrive();
    await backend.last('acquire').busy({ spent: true });
    await backend.confirm();
    expect(backend.owners('acquire')).toEqual(['me:1', 'me:2']);
    expect(backend.count('release')).toBe(0);
  });

  it('release an owner in the background whose request may still be executed although the lock was busy', async () => {
    const { backend, arrive } = lockScene();
    arrive();
    await backend.last('acquire').busy({ validUntil: 100 });
    await backend.confirm();
    expect([backend.owners('release'), backend.owners('acquire')]).toEqual([['me:1'], ['me:1', 'me:2']]);
  });
});
