import type { SynchronizerBackend } from '../../../lib/backends/synchronizer-backend.js';
import { LeaseClock } from '../../../lib/engine/hold/lease-clock.js';
import { RenewedPermits } from '../../../lib/engine/permits/renewed-permits.js';
import type { Synchronizer } from '../../../lib/engine/permits/synchronizer.js';
import type { Services } from '../../../lib/engine/services.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { latch } from '../../support/section.js';

const LEASE = 3_000;

describe('permits that are renewed until they are released', () => {
  let runtime: VirtualRuntime;
  let events: { readonly event: string; readonly owner: string }[];
  /** The events that somebody listens to. */
  let wanted: readonly string[];
  let gone: Set<string>;
  let requests: (readonly string[])[];
  let empty: number;
  let answer: Promise<void>;
  let permits: RenewedPermits;
  beforeEach(() => {
    runtime = new VirtualRuntime();
    events = [];
    wanted = ['renewed', 'lost'];
    gone = new Set();
    requests = [];
    empty = 0;
    const hub = {
      hasListener: (event: string) => wanted.includes(event),
      emit: (event: string, { owner }: { owner: string }) => void events.push({ event, owner }),
      logger: { warn: () => {} },
    };
    answer = Promise.resolve();
    const renewPermits = async (_: string, ids: readonly string[]) => {
      requests.push(ids);
      await answer;
      return ids.map((id) => !gone.has(id));
    };
    const presence = { noticed: () => {} };
    permits = new RenewedPermits(
      () => ({ renewPermits }) as unknown as SynchronizerBackend,
      { runtime, clock: new LeaseClock(runtime), events: hub, presence } as unknown as Services,
      LEASE,
      () => void empty++,
    );
  });

  const semaphore = (name: string) => ({ name, key: `lock:${name}`, what: name }) as Synchronizer;
  const [mail, sms] = ['mail', 'sms'].map(semaphore);
  const add = (to: Synchronizer, ...ids: string[]) =>
    permits.add(to, ids, { monotonic: runtime.monotonic(), wall: runtime.wall() });

  it('stay for as long as the backend has them', async () => {
    add(mail, 'a');
    await runtime.advance(10 * LEASE);
    expect(requests.length).toBeGreaterThan(10);
    expect(events.filter(({ event }) => event === 'lost')).toEqual([]);
    gone.add('a');
    await runtime.advance(LEASE);
    expect(events.filter(({ event }) => event === 'lost')).toEqual([{ event: 'lost', owner: 'a' }]);
    expect(permits.size).toBe(0);
  });

  it('are renewed together with the others of their semaphore', async () => {
    add(mail, 'a', 'b');
    add(sms, 'c');
    await runtime.advance(LEASE / 2);
    expect(requests).toEqual([['a', 'b'], ['c']]);
  });

  it('have an event for each renewal, if somebody listens', async () => {
    add(mail, 'a', 'b');
    await runtime.advance(LEASE / 2);
    expect(events).toEqual(['a', 'b'].map((owner) => ({ event: 'renewed', owner })));
    wanted = [];
    await runtime.advance(LEASE);
    expect(events).toHaveLength(2);
  });

  it('are not renewed after their release, and then nothing stays behind', async () => {
    add(mail, 'a', 'b');
    permits.remove(mail, ['a', 'unknown']);
    await runtime.advance(LEASE / 2);
    expect(requests).toEqual([['b']]);
    permits.remove(mail, ['b']);
    await runtime.advance(10 * LEASE);
    expect(requests).toHaveLength(1);
    expect(runtime.timers).toBe(0);
  });

  it('are not asked for after their release while an earlier request was under way', async () => {
    const late = latch();
    answer = late.promise;
    add(mail, 'a', 'b');
    await runtime.advance(LEASE / 2);
    await permits.replaceRenewal(mail, 'a', () => Promise.reject(new Error('refused'))).catch(() => {});
    await runtime.advance(1);
    permits.remove(mail, ['a', 'b']);
    late.open();
    await runtime.settle();
    expect(requests).toEqual([['a', 'b']]);
  });

  it('tell when the last one was released, of any semaphore', () => {
    add(mail, 'a', 'b');
    add(sms, 'c');
    permits.remove(mail, ['a', 'b']);
    permits.remove(mail, ['a']);
    expect([empty, permits.isEmpty]).toEqual([0, false]);
    permits.remove(sms, ['c']);
    expect([empty, permits.isEmpty]).toEqual([1, true]);
  });
});
