import { BackendError } from '../../../lib/backends/backend-error.js';
import type { SynchronizerBackend } from '../../../lib/backends/synchronizer-backend.js';
import { PermitWaiter } from '../../../lib/engine/synchronizers/permit-queue.js';
import {
  CountedPermits,
  LeasedPermits,
  type LeasedPermitTerms,
  OpenLatch,
} from '../../../lib/engine/synchronizers/permit-sources.js';
import type { RenewedPermits } from '../../../lib/engine/synchronizers/renewed-permits.js';
import type { Synchronizer } from '../../../lib/engine/synchronizers/synchronizer.js';
import { FOREVER, type Milliseconds } from '../../../lib/engine/terms/duration.js';
import { LeaseClock } from '../../../lib/engine/time/lease-clock.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

const CLIENT = '01234567-89ab-4cde-8f01-23456789abcd';
const SEMAPHORE: Synchronizer = {
  name: 'mail',
  key: 'lock:mail',
  what: "the semaphore 'mail'",
  method: 'getSemaphore',
  initial: undefined,
};
const ID = { session: 'client:permits', sequence: 7 };
/** The lease of permits that are renewed. */
const WATCHDOG = 30_000;

let runtime: VirtualRuntime;
let granted: unknown[];
/** What the backend was asked, and in which order. */
let asked: unknown[][];
let missing: number;
let givenBack: unknown[];
beforeEach(() => {
  runtime = new VirtualRuntime();
  granted = [];
  asked = [];
  missing = 0;
  givenBack = [];
});

function waiterFor<T>(permits: number, leaseTime?: number): PermitWaiter<T, LeasedPermitTerms> {
  const terms = { waitTime: FOREVER, outageTimeout: FOREVER, signal: undefined };
  return new PermitWaiter<T, LeasedPermitTerms>(
    SEMAPHORE,
    permits,
    { ...terms, leaseTime: leaseTime as Milliseconds | undefined },
    runtime,
    (result) => void granted.push([permits, result]),
    () => {},
  );
}

const backend = (methods: object) =>
  ({
    subscribe: (...args: unknown[]) => {
      asked.push(['subscribe', ...args]);
      return { ready: Promise.resolve(), close: () => {} };
    },
    ...methods,
  }) as unknown as SynchronizerBackend;
const giveBack = (unused: unknown) => void givenBack.push(unused);
const onMissing = () => void missing++;

describe('permits that are only counted', () => {
  let served: number;
  let source: CountedPermits;
  beforeEach(() => {
    served = 0;
    const takePermits = async (...args: unknown[]) => {
      asked.push(args);
      return served;
    };
    source = new CountedPermits(backend({ takePermits }), SEMAPHORE, giveBack, onMissing);
  });

  it('are taken for 64 callers at a time', () => {
    const waiters = Array.from({ length: 70 }, () => waiterFor<void>(1));
    expect(source.selectBatch(waiters)).toEqual(waiters.slice(0, 64));
    expect(source.selectBatch(waiters.slice(0, 3))).toEqual(waiters.slice(0, 3));
    expect(source.selectBatch([])).toEqual([]);
  });

  it('are asked for in the order of the callers, under the id of the request', async () => {
    served = 1;
    const request = source.request([waiterFor<void>(2), waiterFor<void>(3)], ID, 9);
    expect(await request.send(false)).toEqual({ served: 1, remaining: -1 });
    expect(await request.send(true)).toEqual({ served: 1, remaining: -1 });
    expect(asked).toEqual([
      ['lock:mail', [2, 3], { ...ID, repeated: false }, 9],
      ['lock:mail', [2, 3], { ...ID, repeated: true }, 9],
    ]);
    expect(request.takesPermits).toBe(true);
  });

  it('may be too few, which does not mean that there is no semaphore', async () => {
    expect(await source.request([waiterFor<void>(2)], ID, undefined).send(false)).toEqual({ served: 0, remaining: -1 });
    expect(missing).toBe(0);
  });

  it('are reported as missing if there is no semaphore', async () => {
    served = -1;
    const result = await source.request([waiterFor<void>(2)], ID, undefined).send(false);
    expect(result).toEqual({ served: 0, remaining: -1, missing: true });
    expect(missing).toBe(1);
  });

  it('are granted one caller at a time, and given back together', () => {
    const request = source.request(
      [2, 3, 4].map((permits) => waiterFor<void>(permits)),
      ID,
      undefined,
    );
    request.grant(1);
    expect(granted).toEqual([[3, undefined]]);
    request.giveBack([0, 2]);
    expect(givenBack).toEqual([6]);
  });

  it('are announced on the channel of their semaphore', () => {
    const listener = () => {};
    source.subscribe(listener);
    expect(asked).toEqual([['subscribe', 'lock:mail', 'semaphore', listener]]);
  });
});

describe('permits with an id and a lease', () => {
  let result: { served: number; remaining: number; missing?: boolean };
  /** How many milliseconds the backend takes to answer. */
  let delay: number;
  let renewed: unknown[];
  let source: LeasedPermits;
  beforeEach(() => {
    result = { served: 1, remaining: 500 };
    delay = 0;
    renewed = [];
    const takeLeasedPermits = async (...args: unknown[]) => {
      asked.push(args);
      runtime.block(delay);
      return result;
    };
    const renewedPermits = {
      leaseTime: WATCHDOG,
      add: (_: Synchronizer, ids: readonly string[], { monotonic }: { monotonic: number }) =>
        void renewed.push([ids, monotonic]),
    };
    source = new LeasedPermits(
      backend({ takeLeasedPermits }),
      { clientId: CLIENT, clock: new LeaseClock(runtime), runtime },
      renewedPermits as unknown as RenewedPermits,
      SEMAPHORE,
      giveBack,
      onMissing,
    );
  });

  type Ids = readonly string[];
  const waiter = (permits: number, leaseTime?: number) => waiterFor<Ids>(permits, leaseTime);
  /** The ids of the last request, by its callers. */
  const idsAsked = () => asked[asked.length - 1][1] as readonly Ids[];

  it('are taken for 64 callers at a time', () => {
    const waiters = Array.from({ length: 70 }, () => waiter(1));
    expect(source.selectBatch(waiters)).toEqual(waiters.slice(0, 64));
  });

  it('are taken for 1,000 permits at a time, or for one caller that wants more', () => {
    const waiters = [waiter(400), waiter(599), waiter(1), waiter(1)];
    expect(source.selectBatch(waiters)).toEqual(waiters.slice(0, 3));
    const exact = [waiter(400), waiter(600), waiter(1)];
    expect(source.selectBatch(exact)).toEqual(exact.slice(0, 2));
    const more = [waiter(400), waiter(601), waiter(1)];
    expect(source.selectBatch(more)).toEqual(more.slice(0, 1));
  });

  it('are taken together if their leases are equally long', () => {
    const waiters = [waiter(1, 500), waiter(1, 500), waiter(1, 600), waiter(1, 500)];
    expect(source.selectBatch(waiters)).toEqual(waiters.slice(0, 2));
    const others = [waiter(1), waiter(1), waiter(1, 500)];
    expect(source.selectBatch(others)).toEqual(others.slice(0, 2));
  });

  it('have different ids, which begin with the digits of the client and are the same in a repetition', async () => {
    const request = source.request([waiter(2, 5_000), waiter(1, 5_000)], ID, 9);
    expect(await request.send(false)).toEqual(result);
    const ids = idsAsked();
    expect(ids.map(({ length }) => length)).toEqual([2, 1]);
    expect(new Set(ids.flat()).size).toBe(3);
    for (const id of ids.flat()) expect(id).toMatch(/^0123456789ab[0-9a-f]{20}$/);
    await request.send(true);
    expect(asked).toEqual([
      ['lock:mail', ids, 5_000, { ...ID, repeated: false }, 9],
      ['lock:mail', ids, 5_000, { ...ID, repeated: true }, 9],
    ]);
    expect(request.takesPermits).toBe(true);
  });

  it('have the lease of the watchdog if they have no lease time, and are renewed from the last request on', async () => {
    const request = source.request([waiter(2), waiter(1)], ID, undefined);
    await request.send(false);
    expect(asked[0][2]).toBe(WATCHDOG);
    await runtime.advance(700);
    await request.send(true);
    await runtime.advance(50);
    request.grant(0);
    const [ids] = idsAsked();
    expect(renewed).toEqual([[ids, 700]]);
    expect(granted).toEqual([[2, ids]]);
  });

  it('are not renewed if they have a lease time', async () => {
    const request = source.request([waiter(1, 5_000)], ID, undefined);
    await request.send(false);
    request.grant(0);
    expect(renewed).toEqual([]);
    expect(granted).toEqual([[1, idsAsked()[0]]]);
  });

  it('are given back together', async () => {
    const request = source.request([waiter(2), waiter(1), waiter(1)], ID, undefined);
    await request.send(false);
    request.giveBack([0, 2]);
    const ids = idsAsked();
    expect(givenBack).toEqual([[...ids[0], ...ids[2]]]);
  });

  it('are given back if the answer came after their lease had ended', async () => {
    delay = 5_000;
    result = { served: 2, remaining: 500 };
    const request = source.request([waiter(2, 5_000), waiter(1, 5_000), waiter(1, 5_000)], ID, undefined);
    const { served, remaining, late } = await request.send(false);
    expect([served, remaining]).toEqual([0, 0]);
    expect(late).toBeInstanceOf(BackendError);
    expect(late).toMatchObject({ kind: 'unavailable', outcome: 'refused' });
    expect(late?.message).toContain('after the lease of 5000 ms had ended');
    expect(givenBack).toEqual([idsAsked().slice(0, 2).flat()]);
  });

  it('are not late if there were none, or if the last request was answered in time', async () => {
    delay = 4_000;
    const request = source.request([waiter(1, 5_000)], ID, undefined);
    await request.send(false);
    expect(await request.send(true)).toEqual(result);
    delay = 6_000;
    result = { served: 0, remaining: 500 };
    expect(await request.send(true)).toEqual(result);
    expect(givenBack).toEqual([]);
  });

  it('are reported as missing if there is no semaphore', async () => {
    await source.request([waiter(1)], ID, undefined).send(false);
    expect(missing).toBe(0);
    result = { served: 0, remaining: -1, missing: true };
    expect(await source.request([waiter(1)], ID, undefined).send(false)).toEqual(result);
    expect(missing).toBe(1);
  });

  it('are announced on the channel of their semaphore', () => {
    const listener = () => {};
    source.subscribe(listener);
    expect(asked).toEqual([['subscribe', 'lock:mail', 'semaphore', listener]]);
  });
});

describe('a latch', () => {
  let count: number;
  let source: OpenLatch;
  beforeEach(() => {
    count = 1;
    const getCount = async (key: string) => {
      asked.push([key]);
      return count;
    };
    source = new OpenLatch(backend({ getCount }), SEMAPHORE);
  });
  const waiters = () => Array.from({ length: 100 }, () => waiterFor<void>(0));

  it('is asked for all who wait at once', () => {
    const all = waiters();
    expect(source.selectBatch(all)).toEqual(all);
  });

  it('serves all of them when its count is 0, and nobody before', async () => {
    const request = source.request(waiters());
    expect(await request.send(false)).toEqual({ served: 0, remaining: -1 });
    count = 0;
    expect(await request.send(false)).toEqual({ served: 100, remaining: -1 });
    expect(asked).toEqual([['lock:mail'], ['lock:mail']]);
    request.grant(3);
    expect(granted).toEqual([[0, undefined]]);
  });

  it('takes nothing, so nothing is given back', () => {
    const request = source.request(waiters());
    expect(request.takesPermits).toBe(false);
    request.giveBack([1]);
    expect([asked, givenBack]).toEqual([[], []]);
  });

  it('is announced on the channel of latches', () => {
    const listener = () => {};
    source.subscribe(listener);
    expect(asked).toEqual([['subscribe', 'lock:mail', 'latch', listener]]);
  });
});
