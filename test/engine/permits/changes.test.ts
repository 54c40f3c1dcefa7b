import { BackendError } from '../../../lib/backends/backend-error.js';
import type { RequestId, SynchronizerBackend } from '../../../lib/backends/synchronizer-backend.js';
import {
  addPermitsIfExists,
  countDown,
  giveLeasedPermits,
  releasePermits,
  type SynchronizerChange,
  SynchronizerChanges,
} from '../../../lib/engine/permits/synchronizer-changes.js';
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
    const failed = errorOf(changes.apply(backend, KEY, change, 1));
    expect(await runtime.until(failed, 300_000)).toBeInstanceOf(BackendError);
    expect(runtime.monotonic()).toBeGreaterThan(58_000);
    expect(runtime.monotonic()).toBeLessThanOrEqual(60_000);
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
});
