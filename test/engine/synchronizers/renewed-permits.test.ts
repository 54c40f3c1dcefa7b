import type { SynchronizerBackend } from '../../../lib/backends/synchronizer-backend.js';
import type { Services } from '../../../lib/engine/services.js';
import { RenewedPermits } from '../../../lib/engine/synchronizers/renewed-permits.js';
import type { Synchronizer } from '../../../lib/engine/synchronizers/synchronizer.js';
import { LeaseClock } from '../../../lib/engine/time/lease-clock.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { errorOf, latch } from '../../support/section.js';

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
  let warnings: string[];
  /** What the events say beside the owner. */
  let details: object[];
  let noticed: number[];
  let permits: RenewedPermits;
  beforeEach(() => {
    warnings = [];
    details = [];
    noticed = [];
    runtime = new VirtualRuntime();
    events = [];
    wanted = ['renewed', 'lost'];
    gone = new Set();
    requests = [];
    empty = 0;
    const hub = {
      hasListener: (event: string) => wanted.includes(event),
      emit: (event: string, { owner, ...others }: { owner: string }) => {
        events.push({ event, owner });
        details.push(others);
      },
      logger: { warn: (line: string) => warnings.push(line) },
    };
    answer = Promise.resolve();
    const renewPermits = async (_: string, ids: readonly string[]) => {
      requests.push(ids);
      await answer;
      return ids.map((id) => !gone.has(id));
    };
    const presence = { noticed: (count: number) => void noticed.push(count) };
    permits = new RenewedPermits(
      () => ({ renewPermits }) as unknown as SynchronizerBackend,
      { runtime, clock: new LeaseClock(runtime), events: hub, presence, watchdogs: new Set() } as unknown as Services,
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

  it('are renewed in requests of 512 at most', async () => {
    add(mail, ...Array.from({ length: 1_100 }, (_, i) => `${i}`));
    await runtime.advance(LEASE / 2);
    expect(requests.map(({ length }) => length)).toEqual([512, 512, 76]);
  });

  it('are renewed with others if that is more than a sixth of the lease after the last time', async () => {
    add(mail, 'a');
    await runtime.advance(LEASE / 6);
    add(mail, 'b');
    add(sms, 'c');
    await runtime.advance(1);
    add(mail, 'd');
    await runtime.advance(LEASE / 6 - 1);
    expect(requests).toEqual([['a', 'b']]);
  });

  it('that wait for the answer to an earlier request are renewed in requests of 512 at most, too', async () => {
    const late = latch();
    answer = late.promise;
    add(mail, 'a');
    await runtime.advance(LEASE / 3);
    for (const part of ['b', 'c']) add(mail, ...Array.from({ length: 400 }, (_, i) => `${part}${i}`));
    await runtime.advance(LEASE / 3);
    expect(requests).toHaveLength(1);
    late.open();
    await runtime.settle();
    expect(requests.map(({ length }) => length)).toEqual([1, 512, 288]);
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
    expect(runtime.timers).toBe(0);
    await runtime.advance(10 * LEASE);
    expect(requests).toHaveLength(1);
    expect(events.filter(({ event }) => event === 'lost')).toEqual([]);
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

  const fails = () => {
    answer = Promise.reject(new Error('no answer'));
    answer.catch(() => {});
  };

  it('are renewed one request after another', async () => {
    const late = latch();
    answer = late.promise;
    add(mail, 'a');
    await runtime.advance(LEASE / 2);
    add(mail, 'b');
    add(sms, 'c');
    await runtime.advance(LEASE / 2 - 100);
    expect(requests).toEqual([['a'], ['c']]);
    late.open();
    await runtime.settle();
    expect(requests).toEqual([['a'], ['c'], ['b']]);
  });

  it('are renewed after a request that failed', async () => {
    add(mail, 'a');
    fails();
    await runtime.advance(LEASE / 2);
    answer = Promise.resolve();
    const before = requests.length;
    await runtime.advance(LEASE);
    expect(requests.length).toBeGreaterThan(before);
    expect(permits.size).toBe(1);
    expect(events.some(({ event }) => event === 'lost')).toBe(false);
  });

  it('have the events and the log of failed renewals, which warns once for each failure of several', async () => {
    wanted = ['renewalFailed'];
    add(mail, 'a');
    add(mail, 'b');
    fails();
    await runtime.advance(LEASE * 0.8);
    expect(requests.length).toBeGreaterThan(1);
    const warning = 'Renewing permits of mail failed and is retried until their leases end: no answer';
    expect(warnings).toEqual([warning]);
    expect(events.slice(0, 2)).toEqual(['a', 'b'].map((owner) => ({ event: 'renewalFailed', owner })));
    expect(details[0]).toEqual({
      type: 'semaphore',
      group: '',
      method: '',
      name: 'mail',
      remainingTime: expect.any(Number),
      error: expect.objectContaining({ message: 'no answer' }),
    });
    answer = Promise.resolve();
    await runtime.advance(LEASE);
    fails();
    await runtime.advance(LEASE / 2);
    expect(warnings).toEqual([warning, warning]);
  });

  it('have no events of failed renewals if nobody listens', async () => {
    add(mail, 'a');
    fails();
    await runtime.advance(LEASE / 2);
    expect([events, warnings.length]).toEqual([[], 1]);
  });

  it('are lost with a reason, which the code that needs them is told', async () => {
    const losses: Error[] = [];
    add(mail, 'a', 'b');
    permits.watch(mail, 'a', (loss) => losses.push(loss));
    permits.watch(mail, 'unknown', (loss) => losses.push(loss));
    permits.watch(sms, 'b', (loss) => losses.push(loss));
    gone.add('a').add('b');
    wanted = [];
    await runtime.advance(LEASE / 2);
    expect(losses).toEqual([
      expect.objectContaining({
        name: 'LockLostError',
        lockName: 'mail',
        message:
          'A permit of mail was lost: it no longer existed at renewal. Another process may hold it now; stop the work that needs it',
      }),
    ]);
    expect(events).toEqual(['a', 'b'].map((owner) => ({ event: 'lost', owner })));
    expect(details[0]).toEqual({
      type: 'semaphore',
      group: '',
      method: '',
      name: 'mail',
      held: undefined,
      error: losses[0],
    });
    expect([permits.size, permits.isEmpty, empty]).toEqual([0, true, 1]);
  });

  it('are lost when their lease has ended without an answer', async () => {
    add(mail, 'a');
    answer = new Promise(() => {});
    await runtime.advance(LEASE + 1_000);
    expect(events).toEqual([{ event: 'lost', owner: 'a' }]);
    expect(permits.isEmpty).toBe(true);
  });

  it('are not renewed while they get another lease, nor after that', async () => {
    add(mail, 'a', 'b');
    const lease = latch();
    const set = permits.replaceRenewal(mail, 'a', () => lease.promise.then(() => 'set'));
    expect(permits.size).toBe(1);
    await runtime.advance(LEASE / 2);
    lease.open();
    expect(await set).toBe('set');
    await runtime.advance(LEASE / 2);
    expect(new Set(requests.flat())).toEqual(new Set(['b']));
  });

  it('are renewed at once if it is not known whether they got another lease', async () => {
    add(mail, 'a');
    await runtime.advance(10);
    const failed = errorOf(permits.replaceRenewal(mail, 'a', () => Promise.reject(new Error('no answer'))));
    expect((await failed).message).toBe('no answer');
    await runtime.advance(1);
    expect([requests, permits.size]).toEqual([[['a']], 1]);
  });

  it('are not renewed if they were not before, when it is not known whether they got another lease', async () => {
    await errorOf(permits.replaceRenewal(mail, 'a', () => Promise.reject(new Error('no answer'))));
    await runtime.advance(LEASE);
    expect([requests, permits.size, runtime.timers]).toEqual([[], 0, 0]);
  });

  it('are counted when the service is closed, and no longer renewed', async () => {
    add(mail, 'a', 'b');
    add(sms, 'c');
    expect(permits.size).toBe(3);
    expect(permits.close()).toEqual([
      { semaphore: mail, count: 2 },
      { semaphore: sms, count: 1 },
    ]);
    expect([permits.size, permits.isEmpty, runtime.timers]).toEqual([0, true, 0]);
    await runtime.advance(2 * LEASE);
    expect([requests, events, runtime.timers]).toEqual([[], [], 0]);
    expect(permits.close()).toEqual([]);
  });

  it('are not lost by an answer that comes after the service was closed', async () => {
    const late = latch();
    answer = late.promise;
    add(mail, 'a');
    await runtime.advance(LEASE / 2);
    permits.close();
    gone.add('a');
    late.open();
    await runtime.settle();
    expect(events).toEqual([]);
  });

  it('are asked for once if they were to be renewed already when their lease became unknown', async () => {
    const late = latch();
    answer = late.promise;
    add(mail, 'first');
    await runtime.advance(LEASE / 2);
    add(mail, 'a');
    await runtime.advance(LEASE / 2 - 100);
    await errorOf(permits.replaceRenewal(mail, 'a', () => Promise.reject(new Error('no answer'))));
    await runtime.advance(1);
    late.open();
    await runtime.settle();
    expect(requests).toEqual([['first'], ['a']]);
  });

  it('are told apart in an answer, also if some were released before their request was sent', async () => {
    const late = latch();
    answer = late.promise;
    add(mail, 'first');
    await runtime.advance(LEASE / 2);
    add(mail, 'a', 'b');
    await runtime.advance(LEASE / 2 - 100);
    permits.remove(mail, ['a']);
    late.open();
    await runtime.settle();
    expect(requests).toEqual([['first'], ['b']]);
    expect(events).toEqual(['first', 'b'].map((owner) => ({ event: 'renewed', owner })));
  });

  it('keep the record of their process fresh', async () => {
    add(mail, 'a');
    await runtime.advance(2 * LEASE);
    expect(noticed.length).toBeGreaterThan(3);
    expect(new Set(noticed)).toEqual(new Set([0]));
  });

  it('have a warning in the log when the event loop was blocked', async () => {
    add(mail, 'a');
    await runtime.advance(100);
    runtime.block(LEASE * 0.9);
    await runtime.advance(10);
    expect(warnings).toEqual([expect.stringContaining('The event loop of this process was blocked for')]);
  });
});
