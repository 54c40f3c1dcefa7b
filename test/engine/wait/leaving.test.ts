import { getEventListeners } from 'node:events';
import { BackendError } from '../../../lib/backends/lock-backend.js';
import { ms } from '../../support/lock-world.js';
import { held, leaseOf, lockScene, resting } from '../queue/scripted-scene.js';

describe('a caller that waits', () => {
  it('is refused when its waitTime has passed since it arrived, and not before', async () => {
    const { runtime, arrive } = await held();
    await runtime.advance(5_000);
    const caller = arrive({ waitTime: ms(1_000) });
    await runtime.advance(999);
    expect(caller.outcome).toBeUndefined();
    await runtime.advance(1);
    expect(caller.outcome).toBe('LockBusyError');
  });

  it('leaves when its signal is aborted, with the reason as the cause, and is not announced as busy', async () => {
    const { engine, runtime, arrive } = await held();
    const busy: unknown[] = [];
    engine.on('busy', (event) => busy.push(event));
    const abort = new AbortController();
    const caller = arrive({ signal: abort.signal, waitTime: ms(1_000) });
    const { keepAliveTimers } = runtime;
    abort.abort('closed');
    await runtime.settle();
    expect(caller.error).toMatchObject({ name: 'LockAbortedError', cause: 'closed' });
    expect([busy, keepAliveTimers - runtime.keepAliveTimers]).toEqual([[], 1]);
  });

  it('shares one listener at its signal with others, which is removed when all of them were served', async () => {
    const { backend, lease, arrive } = await held();
    const { signal } = new AbortController();
    const [first, second] = [arrive({ signal }), arrive({ signal })];
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    void lease.release();
    await backend.last('transfer').grant();
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    void leaseOf(first).release();
    await backend.last('transfer').grant();
    expect([second.outcome, getEventListeners(signal, 'abort')]).toEqual(['held', []]);
  });

  it('hears of its signal although others with that signal came and went before', async () => {
    const { runtime, arrive } = await held();
    const abort = new AbortController();
    const { signal } = abort;
    const earlier = arrive({ signal, waitTime: ms(100) });
    await runtime.advance(100);
    const caller = arrive({ signal });
    abort.abort();
    await runtime.settle();
    expect([earlier.outcome, caller.outcome]).toEqual(['LockBusyError', 'LockAbortedError']);
  });
});

describe('a caller that gives up', () => {
  it('names the holder of a permit whose lease ends first', async () => {
    const { backend, runtime, arrive, trier } = lockScene('permits');
    for (const leaseTime of [5_000, 3_000]) {
      arrive({ leaseTime: ms(leaseTime), fixed: true });
      await backend.last('acquire').grant();
    }
    const late = trier();
    await runtime.settle();
    expect(late.error).toMatchObject({ name: 'LockBusyError', holder: 'me:2' });
  });

  it('knows for how long the lease of the holder lasts by then, which is never negative', async () => {
    const { backend, runtime, arrive } = lockScene();
    backend.hold('acquire');
    const callers = [500, 3_000].map((time) => arrive({ waitTime: ms(time) }));
    await backend.last('acquire').busy({ remaining: 1_000 });
    await runtime.advance(500);
    expect(callers[0].error).toMatchObject({ holder: 'other:1', remainingTime: 500 });
    await runtime.advance(2_500);
    expect(callers[1].error).toMatchObject({ holder: 'other:1', remainingTime: 0 });
  });

  it.each([
    [100, 'LockUnavailableError'],
    [99, 'LockBusyError'],
  ] as const)(
    'after %i ms, if a backend in which callers wait has not said for what: %s',
    async (waitTime, expected) => {
      const { runtime, arrive } = lockScene('reentrant', { blocking: true });
      const caller = arrive({ waitTime: ms(waitTime) });
      await runtime.advance(waitTime);
      expect(caller.outcome).toBe(expected);
    },
  );

  it('is told the reason of an outage', async () => {
    const { backend, runtime, arrive } = lockScene('reentrant', { health: true });
    backend.health?.health.failed(false, 'ECONNRESET');
    const caller = arrive({ waitTime: ms(200) });
    await backend.last('acquire').fail('unknown');
    backend.hold('release');
    await runtime.advance(200);
    expect(caller.error).toMatchObject({
      name: 'LockUnavailableError',
      message: expect.stringMatching(/no connection|ECONNRESET/),
    });
  });
});

describe('the log of a queue', () => {
  it.each([
    ['another process', "A caller has waited for the lock 'order' for over 30 s; held by other:1"],
    ['this process', "A caller has waited for the lock 'order' for over 30 s; held by me:1"],
  ] as const)('names a long wait behind %s', async (holder, expected) => {
    const { runtime, logger, arrive } = holder === 'another process' ? await resting() : await held();
    if (holder === 'this process') arrive();
    await runtime.advance(31_000);
    expect(logger.warnings).toEqual([expect.stringContaining(expected)]);
  });

  it('has the failure of the first caller, on a backend that does not report outages', async () => {
    const { backend, logger, arrive } = lockScene();
    arrive();
    await backend.last('acquire').fail('refused', 'unavailable');
    expect(logger.errors).toEqual(["The lock 'order' could not be acquired: no connection"]);
    const quiet = lockScene('reentrant', { health: true });
    quiet.arrive();
    await quiet.backend.last('acquire').fail('refused', 'unavailable');
    expect(quiet.logger.errors).toEqual([]);
  });
});

it('is not refused as an outage by a failure that another caller had', async () => {
  const { backend, runtime, arrive } = lockScene();
  const [first, second] = [arrive(), arrive({ waitTime: ms(500) })];
  await backend.last('acquire').fail('refused', 'denied');
  expect(first.error).toMatchObject({ name: 'LockUnavailableError', cause: expect.any(BackendError) });
  await backend.last('acquire').busy();
  await runtime.advance(500);
  expect(second.outcome).toBe('LockBusyError');
});
