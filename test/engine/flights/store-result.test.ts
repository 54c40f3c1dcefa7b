import { BackendError } from '../../../lib/backends/backend-error.js';
import type {
  FlightBackend,
  FlightRelease,
  FlightReleaseReply,
  ReleaseRequest,
} from '../../../lib/backends/lock-backend.js';
import { type Departing, UnsettledReleases } from '../../../lib/engine/ask/unsettled-releases.js';
import type { UnusedOwner } from '../../../lib/engine/ask/unused-owner.js';
import type { FlightTerms } from '../../../lib/engine/flights/flight-terms.js';
import { type Run, storeResult } from '../../../lib/engine/flights/store-result.js';
import type { HeldLock } from '../../../lib/engine/hold/held-lock.js';
import type { Services } from '../../../lib/engine/services.js';
import { LeaseClock } from '../../../lib/engine/time/lease-clock.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

const COMMAND_TIMEOUT = 2_000;
const LEASE = 10_000;

describe('the end of a run', () => {
  let runtime: VirtualRuntime;
  let warnings: string[];
  /** The releases with a result, and without one. */
  let stored: FlightRelease[];
  let released: ReleaseRequest[];
  let answer: () => Promise<FlightReleaseReply>;
  let unsettled: UnsettledReleases;
  /** The owners that are released in the background. */
  let background: (UnusedOwner & Departing)[];
  let followedUp: HeldLock[];
  let services: Services;
  beforeEach(() => {
    runtime = new VirtualRuntime();
    [warnings, stored, released, background, followedUp] = [[], [], [], [], []];
    answer = async () => ({ released: 'now', resent: false });
    unsettled = new UnsettledReleases();
    services = {
      backend: {
        release: async (request: ReleaseRequest) => {
          released.push(request);
          return { released: true, resent: false };
        },
      },
      backgroundReleases: {
        release: (owner: UnusedOwner) => {
          const work = { ...owner, underWay: true, previous: undefined, next: undefined, whenAnswered: undefined };
          background.push(work);
          unsettled.begin(work);
        },
        followUp: (held: HeldLock) => void followedUp.push(held),
      },
      clock: new LeaseClock(runtime),
      commandTimeout: COMMAND_TIMEOUT,
      events: { logger: { warn: (line: string) => void warnings.push(line) } },
      runtime,
      unsettledReleases: unsettled,
    } as unknown as Services;
  });

  const flights = {
    release: (release: FlightRelease) => {
      stored.push(release);
      return answer();
    },
  } as unknown as FlightBackend;
  const held = () =>
    ({
      name: 'price',
      key: 'lock:price',
      type: 'flight',
      owner: 'client:1',
      token: 7,
      leaseTime: LEASE,
      validFor: LEASE,
      confirmed: { monotonic: 0, wall: Date.parse('2025-01-01T00:00:00Z') },
      lateCopiesUntil: undefined,
    }) as unknown as HeldLock;
  const end = (outcome: Run['outcome'], terms: Partial<FlightTerms> = {}) =>
    storeResult(services, flights, {
      held: held(),
      terms: { keepFor: 500, maxSize: 100, ...terms } as FlightTerms,
      outcome,
    });
  /** Notes the outcome as soon as there is one. */
  const watched = (outcome: Promise<string>) => {
    const seen: { outcome?: string } = {};
    void outcome.then((settled) => {
      seen.outcome = settled;
    });
    return seen;
  };

  it('stores its result with the release', async () => {
    await runtime.advance(300);
    expect(await end({ value: '"7"' })).toBe('released');
    expect(stored).toEqual([
      { key: 'lock:price', owner: 'client:1', token: 7, keepFor: 500, value: '"7"', runnerWaitsUntil: 2_300 },
    ]);
    expect([released, warnings, runtime.timers]).toEqual([[], [], 0]);
    expect(followedUp).toEqual([held()]);
  });

  it.each<[FlightReleaseReply, string]>([
    [{ released: 'before', resent: false }, 'released'],
    [{ released: 'gone', resent: false }, 'gone'],
    [{ released: 'gone', resent: true }, 'released'],
  ])('has the outcome of the release: %j', async (reply, outcome) => {
    answer = async () => reply;
    expect(await end({ value: '1' })).toBe(outcome);
  });

  it('warns if the backend cannot store the result', async () => {
    answer = async () => ({ released: 'now', resent: false, refusal: 'no memory' });
    expect(await end({ value: '1' })).toBe('released');
    expect(warnings).toEqual(["The result of the single flight 'price' could not be stored: no memory"]);
  });

  it.each<[string, Run['outcome'], number]>([
    ['has failed', { error: new Error('body') }, 0],
    ['has not ended', undefined, 0],
    ['has ended after its lease', { value: '1' }, LEASE - LEASE / 100 - 2],
  ])('stores nothing if the body %s, and releases the lock', async (_, outcome, time) => {
    await runtime.advance(time);
    expect(await end(outcome)).toBe('released');
    expect(stored).toEqual([]);
    expect(released).toMatchObject([{ key: 'lock:price', type: 'flight', owner: 'client:1' }]);
    expect(warnings).toEqual([]);
  });

  it('stores a result until the end of its lease', async () => {
    await runtime.advance(LEASE - LEASE / 100 - 3);
    await end({ value: '1' });
    expect([stored.length, released]).toEqual([1, []]);
  });

  it('stores a result of maxSize bytes, and warns of a larger one', async () => {
    await end({ value: 'é'.repeat(50) });
    expect([stored.length, warnings]).toEqual([1, []]);
    expect(await end({ value: `é`.repeat(50).concat('x') })).toBe('released');
    expect([stored.length, released.length]).toEqual([1, 1]);
    expect(warnings).toEqual([
      "The result of the single flight 'price' has 101 bytes, more than maxSize (100), and is not stored: callers of other processes run the body themselves. Return less, or raise maxSize",
    ]);
  });

  describe('whose release has no answer', () => {
    const fail = (outcome: 'refused' | 'unknown') => {
      answer = () => Promise.reject(new BackendError('no answer', 'unavailable', outcome));
    };

    it('is repeated in the background, and keeps its runner until the command timeout', async () => {
      fail('unknown');
      await runtime.advance(300);
      const seen = watched(end({ value: '1' }));
      await runtime.advance(100);
      expect(background).toMatchObject([
        { key: 'lock:price', owner: 'client:1', name: 'price', flight: { value: '1', runnerWaitsUntil: 2_300 } },
      ]);
      expect([followedUp, runtime.keepAliveTimers]).toEqual([[], 1]);
      await runtime.advance(COMMAND_TIMEOUT - 101);
      expect(seen).toEqual({});
      await runtime.advance(1);
      expect(seen).toEqual({ outcome: 'unreachable' });
      expect(runtime.timers).toBe(0);
    });

    it('lets its runner go when a repetition is settled, and not when it is only answered', async () => {
      fail('unknown');
      const seen = watched(end({ value: '1' }));
      await runtime.settle();
      unsettled.answered(background[0]);
      await runtime.settle();
      expect([seen, runtime.timers]).toEqual([{}, 1]);
      unsettled.end(background[0]);
      await runtime.settle();
      expect([seen, runtime.timers]).toEqual([{ outcome: 'unreachable' }, 0]);
    });

    it('lets its runner go at once if it was not sent, and ended at this moment', async () => {
      fail('refused');
      await runtime.advance(300);
      expect(await end({ value: '1' })).toBe('unreachable');
      expect(background).toMatchObject([{ flight: { value: '1', runnerWaitsUntil: 300 } }]);
      expect(runtime.timers).toBe(0);
    });
  });
});
