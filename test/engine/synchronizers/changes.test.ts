import { BackendError } from '../../../lib/backends/backend-error.js';
import type { RequestId, SynchronizerBackend } from '../../../lib/backends/synchronizer-backend.js';
import { LockScope, lockScopes, type ScopedLease } from '../../../lib/engine/scope/lock-scope.js';
import { ShareGates } from '../../../lib/engine/scope/share-gate.js';
import {
  addCountedPermits,
  addLeasedPermits,
  addPermitsIfExists,
  countDown,
  deleteLatch,
  drainPermits,
  giveLeasedPermits,
  releasePermits,
  type SynchronizerChange,
  SynchronizerChanges,
  setPermits,
  trySetCount,
  trySetCountedPermits,
  trySetLeasedPermits,
} from '../../../lib/engine/synchronizers/synchronizer-changes.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { errorOf, latch } from '../../support/section.js';

const KEY = 'lock:mail';
const backend = {} as SynchronizerBackend;

describe('changes of one object', () => {
  let runtime: VirtualRuntime;
  let changes: SynchronizerChanges;
  beforeEach(() => {
    runtime = new VirtualRuntime();
    let sequence = 0;
    changes = new SynchronizerChanges(runtime, () => ({ session: 'client:change', sequence: ++sequence }));
  });

  /** A change that records its requests. `answer` is awaited before each reply. */
  function recorded(answer: () => Promise<unknown> = async () => {}) {
    const requests: { items: readonly unknown[]; request: RequestId; at: number }[] = [];
    const change: SynchronizerChange<unknown, unknown> = async (_, __, items, request) => {
      requests.push({ items, request, at: runtime.monotonic() });
      await answer();
      return items;
    };
    return { requests, change };
  }

  it('that arrive during a request are sent together, and each gets its own reply', async () => {
    const answer = latch();
    const { requests, change } = recorded(() => answer.promise);
    const replies = ['a', 'b', 'c'].map((item) => changes.apply(backend, KEY, change, item));
    await runtime.settle();
    expect(requests.map(({ items }) => items)).toEqual([['a']]);
    answer.open();
    expect(await Promise.all(replies)).toEqual(['a', 'b', 'c']);
    expect(requests.map(({ items }) => items)).toEqual([['a'], ['b', 'c']]);
  });

  it('are sent in requests of at most 512 items, in which each id of a list counts', async () => {
    const { requests, change } = recorded();
    const ids = (count: number) => Array.from({ length: count }, (_, n) => `${n}`);
    const lists = [ids(1), ids(300), ids(212), ids(1), ids(600), ids(1)];
    await Promise.all(lists.map((list) => changes.apply(backend, KEY, change, list)));
    expect(requests.map(({ items }) => items.map((list) => (list as string[]).length))).toEqual([
      [1],
      [300, 212],
      [1],
      [600],
      [1],
    ]);
  });

  it('of different kinds are sent one after another, in the order of their calls', async () => {
    const [one, other] = [recorded(), recorded()];
    const order = [one, one, other, one].map(({ change }, n) => changes.apply(backend, KEY, change, n));
    await Promise.all(order);
    expect(one.requests.map(({ items }) => items)).toEqual([[0], [1], [3]]);
    expect(other.requests.map(({ items }) => items)).toEqual([[2]]);
    expect(changes.size).toBe(0);
  });

  it('are repeated with growing pauses, and given up after a minute', async () => {
    const { requests, change } = recorded(async () => {
      throw new BackendError('no answer in time', 'unavailable', 'unknown');
    });
    const began = 1_000_000;
    await runtime.advance(began);
    const failed = errorOf(changes.apply(backend, KEY, change, 1));
    expect(await runtime.until(failed, 300_000)).toBeInstanceOf(BackendError);
    expect(runtime.monotonic() - began).toBeGreaterThan(58_000);
    expect(runtime.monotonic() - began).toBeLessThanOrEqual(60_000);
    const pauses = requests.slice(1).map(({ at }, n) => at - requests[n].at);
    expect(pauses[0]).toBeLessThanOrEqual(50);
    expect(Math.min(...pauses.slice(6))).toBeGreaterThanOrEqual(500);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1_000);
    expect(changes.size).toBe(0);
    expect(runtime.timers).toBe(0);
  });

  it('are repeated under the same id, and as repetitions if they may have been executed', async () => {
    const outcomes = ['refused', 'unknown', 'refused'] as const;
    let attempts = 0;
    const { requests, change } = recorded(async () => {
      const outcome = outcomes[attempts++];
      if (outcome !== undefined) throw new BackendError('no answer in time', 'unavailable', outcome);
    });
    await runtime.until(changes.apply(backend, KEY, change, 1));
    const id = { session: 'client:change', sequence: 1 };
    const repeated = { ...id, repeated: true };
    expect(requests.map(({ request }) => request)).toEqual([id, id, repeated, repeated]);
  });

  it('that the backend refuses for good are not repeated, and do not stop later ones', async () => {
    let attempts = 0;
    const { change } = recorded(async () => {
      if (++attempts === 1) throw new BackendError('no permission', 'denied', 'refused');
    });
    const results = await Promise.allSettled([1, 2].map((item) => changes.apply(backend, KEY, change, item)));
    expect(results).toMatchObject([{ status: 'rejected' }, { status: 'fulfilled', value: 2 }]);
    expect(attempts).toBe(2);
  });

  const unanswered = () => new BackendError('no answer in time', 'unavailable', 'unknown');

  it('fail together if they were sent together', async () => {
    const answer = latch();
    const { change } = recorded(async () => {
      await answer.promise;
      if (requests++ > 0) throw new BackendError('no permission', 'denied', 'refused');
    });
    let requests = 0;
    const replies = Promise.allSettled(['a', 'b', 'c'].map((item) => changes.apply(backend, KEY, change, item)));
    answer.open();
    expect((await replies).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  });

  it('are sent in requests of at most 512 items', async () => {
    const { requests, change } = recorded();
    await Promise.all(Array.from({ length: 514 }, (_, n) => changes.apply(backend, KEY, change, n)));
    expect(requests.map(({ items, request }) => [items.length, request.sequence])).toEqual([
      [1, 1],
      [512, 2],
      [1, 3],
    ]);
  });

  it('do not wait for changes of another object', async () => {
    const { requests, change } = recorded(() => new Promise(() => {}));
    void changes.apply(backend, KEY, change, 'a');
    void changes.apply(backend, 'lock:sms', change, 'b');
    await runtime.settle();
    expect(requests.map(({ items }) => items)).toEqual([['a'], ['b']]);
    expect(changes.size).toBe(2);
  });

  it('are sent outside the lock scope of their caller', async () => {
    const scopes: unknown[] = [];
    const { change } = recorded(async () => void scopes.push(lockScopes.getStore()));
    const lease = { live: true, released: false, locks: [], gates: new ShareGates([]) } as unknown as ScopedLease;
    await lockScopes.run(new LockScope(lease, undefined), () => changes.apply(backend, KEY, change, 1));
    expect(scopes).toEqual([undefined]);
  });

  it('are awaited until the last of them has succeeded or failed', async () => {
    const answers = [latch(), latch()];
    const one = recorded(() => answers[0].promise);
    const other = recorded(async () => {
      await answers[1].promise;
      throw new BackendError('no permission', 'denied', 'refused');
    });
    const done = changes.apply(backend, KEY, one.change, 1);
    const failed = errorOf(changes.apply(backend, 'lock:sms', other.change, 2));
    let idle = false;
    void changes.idle().then(() => {
      idle = true;
    });
    answers[0].open();
    await done;
    await runtime.settle();
    expect(idle).toBe(false);
    answers[1].open();
    await failed;
    await runtime.settle();
    expect([idle, changes.size]).toEqual([true, 0]);
    await changes.idle();
  });

  it('are not repeated any more once this is stopped, whether they were sent before or after', async () => {
    const answer = latch();
    const { requests, change } = recorded(async () => {
      await answer.promise;
      throw unanswered();
    });
    const before = errorOf(changes.apply(backend, KEY, change, 1));
    await runtime.settle();
    changes.stopRetrying();
    const after = errorOf(changes.apply(backend, 'lock:sms', change, 2));
    answer.open();
    const failures = await runtime.until(Promise.all([before, after]), 0);
    expect(failures).toEqual([expect.any(BackendError), expect.any(BackendError)]);
    expect([requests.length, runtime.timers, changes.size]).toEqual([2, 0, 0]);
  });

  describe('that are abandoned', () => {
    it('fail at once, those under way and those that were not sent', async () => {
      const answer = latch();
      const { requests, change } = recorded(() => answer.promise);
      const failures = [1, 2].map((item) => errorOf(changes.apply(backend, KEY, change, item)));
      await runtime.settle();
      changes.abandon();
      for (const failure of await runtime.until(Promise.all(failures), 0)) {
        expect(failure).toBeInstanceOf(BackendError);
        expect(failure).toMatchObject({
          message: 'the lock service was closed before the backend answered',
          kind: 'unavailable',
          outcome: 'unknown',
        });
      }
      answer.open();
      await runtime.settle();
      expect([requests.length, changes.size]).toEqual([1, 0]);
    });

    it('are not repeated when their request fails', async () => {
      const answer = latch();
      const { requests, change } = recorded(async () => {
        await answer.promise;
        throw unanswered();
      });
      const failure = errorOf(changes.apply(backend, KEY, change, 1));
      await runtime.settle();
      changes.abandon();
      await runtime.until(failure, 0);
      answer.open();
      await runtime.settle();
      expect([requests.length, changes.size, runtime.timers]).toEqual([1, 0, 0]);
    });

    it('are not repeated after a pause, which ends at once', async () => {
      const { requests, change } = recorded(async () => {
        throw unanswered();
      });
      const failure = errorOf(changes.apply(backend, KEY, change, 1));
      await runtime.settle();
      expect(runtime.keepAliveTimers).toBe(1);
      changes.abandon();
      await runtime.until(failure, 0);
      await runtime.settle();
      expect([requests.length, changes.size, runtime.timers]).toEqual([1, 0, 0]);
    });
  });
});

describe('one request for several changes', () => {
  const request = { session: 'client:change', sequence: 1 };

  it.each([
    ['permits that are released', 'addPermits', releasePermits],
    ['permits that are released if their semaphore exists', 'addPermitsIfExists', addPermitsIfExists],
    ['the steps of a latch', 'countDown', countDown],
  ] as const)('adds up %s', async (_, command, change) => {
    const amounts: unknown[] = [];
    const counting = { [command]: async (_: string, amount: number) => void amounts.push(amount) };
    const replies = await (change as SynchronizerChange<number, unknown>)(
      counting as unknown as SynchronizerBackend,
      KEY,
      [2, 3],
      request,
    );
    expect(amounts).toEqual([5]);
    expect(replies).toHaveLength(2);
  });

  it('gives each caller the answers for the ids that it released', async () => {
    const held = new Set(['a', 'c', 'd']);
    const giving = { giveLeasedPermits: async (_: string, ids: readonly string[]) => ids.map((id) => held.has(id)) };
    const lists = [['a', 'b'], [], ['c'], ['d', 'e']];
    expect(await giveLeasedPermits(giving as unknown as SynchronizerBackend, KEY, lists, request)).toEqual([
      [true, false],
      [],
      [true],
      [true, false],
    ]);
  });

  /** Changes an object of a backend that answers each command by `answer`. */
  const changed = async (change: SynchronizerChange<never, unknown>, items: readonly unknown[], answer: unknown) => {
    const asked: unknown[][] = [];
    const answering = new Proxy({} as SynchronizerBackend, {
      get:
        (_, command) =>
        async (...args: unknown[]) => {
          asked.push([command, ...args.map((arg) => (arg === request ? 'request' : arg))]);
          return answer;
        },
    });
    const replies = await change(answering, KEY, items as never[], request);
    return { asked, replies };
  };

  it.each<[string, SynchronizerChange<number, void>, unknown[]]>([
    ['gives taken permits back, of either kind of semaphore', releasePermits, []],
    ['adds to the permits of a semaphore', addCountedPermits, ['semaphore']],
    ['adds to the permits of a semaphore whose permits have ids', addLeasedPermits, ['permit-expirable-semaphore']],
  ])('%s', async (_, change, type) => {
    expect(await changed(change, [2, -3], undefined)).toEqual({
      asked: [['addPermits', KEY, -1, 'request', ...type]],
      replies: [undefined, undefined],
    });
  });

  it.each([true, false])('tells all callers whether the semaphore exists: %s', async (exists) => {
    const { asked, replies } = await changed(addPermitsIfExists, [2, 3], exists);
    expect(asked).toEqual([['addPermitsIfExists', KEY, 5, 'request']]);
    expect(replies).toEqual([exists, exists]);
  });

  it('gives the permits that were drained to the first caller', async () => {
    expect(await changed(drainPermits, [undefined, undefined, undefined], 7)).toEqual({
      asked: [['drainPermits', KEY, 'request']],
      replies: [7, 0, 0],
    });
  });

  it.each<[string, SynchronizerChange<number, boolean>, string, unknown[]]>([
    ['the permits of a semaphore', trySetCountedPermits, 'trySetPermits', ['semaphore']],
    ['permits with ids', trySetLeasedPermits, 'trySetPermits', ['permit-expirable-semaphore']],
    ['the count of a latch', trySetCount, 'trySetCount', []],
  ])('sets %s for the first caller, if they were not set before', async (_, change, command, type) => {
    for (const isFirst of [true, false])
      expect(await changed(change, [4, 5, 6], isFirst)).toEqual({
        asked: [[command, KEY, 4, 'request', ...type]],
        replies: [isFirst, false, false],
      });
  });

  it('sets the total of permits for the last caller', async () => {
    expect(await changed(setPermits, [4, 5, 6], undefined)).toEqual({
      asked: [['setPermits', KEY, 6, 'request']],
      replies: [undefined, undefined, undefined],
    });
  });

  it('counts down by all steps', async () => {
    expect(await changed(countDown, [1, 2], undefined)).toEqual({
      asked: [['countDown', KEY, 3, 'request']],
      replies: [undefined, undefined],
    });
  });

  it.each([true, false])('deletes a latch for the first caller: %s', async (existed) => {
    expect(await changed(deleteLatch, [undefined, undefined], existed)).toEqual({
      asked: [['deleteLatch', KEY, 'request']],
      replies: [existed, false],
    });
  });
});
