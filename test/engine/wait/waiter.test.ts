import { getEventListeners } from 'node:events';
import { BackendError } from '../../../lib/backends/lock-backend.js';
import { Attempt } from '../../../lib/engine/ask/attempt.js';
import { LockAbortedError, LockBusyError } from '../../../lib/engine/errors.js';
import { EventHub } from '../../../lib/engine/events/event-hub.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { Caller, type LeaveReason } from '../../../lib/engine/wait/caller.js';
import { supersededError } from '../../../lib/engine/wait/wait-errors.js';
import { ms, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { lockScene } from '../queue/scripted-scene.js';

class OneCaller extends Caller<string> {
  readonly outcomes: unknown[];

  constructor(runtime: VirtualRuntime, waitTime: number, signal?: AbortSignal) {
    const outcomes: unknown[] = [];
    const note = (outcome: unknown) => void outcomes.push(outcome);
    super('order', { waitTime: ms(waitTime), outageTimeout: FOREVER, signal }, runtime, note, note);
    this.outcomes = outcomes;
  }

  get what(): string {
    return `the lock '${this.name}'`;
  }
}

describe('a waiting caller', () => {
  const busy = new Error('busy');
  /** Watches a caller. @returns why it has left */
  const reasonsOf = (caller: OneCaller) => {
    const reasons: LeaveReason[] = [];
    caller.watch((reason) => {
      reasons.push(reason);
      return busy;
    });
    return reasons;
  };

  it('is refused when its waitTime has passed since it arrived', async () => {
    const runtime = new VirtualRuntime();
    await runtime.advance(5_000);
    const caller = new OneCaller(runtime, 1_000);
    caller.watch(() => busy);
    await runtime.advance(400);
    expect(caller.remainingWait).toBe(600);
    expect(caller.calledFor).toBe(400);
    expect(caller.outcomes).toEqual([]);
    await runtime.advance(600);
    expect(caller.outcomes).toEqual([busy]);
  });

  it.each([0, FOREVER])('with a waitTime of %d ms has no timer, and its wait is not measured', async (waitTime) => {
    const runtime = new VirtualRuntime();
    const caller = new OneCaller(runtime, waitTime);
    caller.watch(() => busy);
    await runtime.advance(100);
    expect(runtime.timers).toBe(0);
    expect(caller.calledFor).toBe(0);
    expect(caller.mayLeave).toBe(false);
    expect(caller.triesOnce).toBe(waitTime === 0);
  });

  it('leaves no timer, and does not listen to its signal any more, once it is served', async () => {
    const runtime = new VirtualRuntime();
    const abort = new AbortController();
    const caller = new OneCaller(runtime, 1_000, abort.signal);
    const reasons = reasonsOf(caller);
    caller.grant('lease');
    expect(runtime.timers).toBe(0);
    abort.abort();
    await runtime.advance(2_000);
    expect(caller.outcomes).toEqual(['lease']);
    expect(reasons).toEqual([]);
  });

  it('leaves when its signal is aborted, and has no timer then', () => {
    const runtime = new VirtualRuntime();
    const abort = new AbortController();
    const caller = new OneCaller(runtime, 1_000, abort.signal);
    const reasons = reasonsOf(caller);
    abort.abort('closed');
    expect(reasons).toEqual(['abort']);
    expect(caller.outcomes).toEqual([expect.any(LockAbortedError)]);
    expect((caller.outcomes[0] as Error).cause).toBe('closed');
    expect(runtime.timers).toBe(0);
  });

  it('leaves when its signal is aborted, even if another caller with the same signal has been served', () => {
    const runtime = new VirtualRuntime();
    const controller = new AbortController();
    const { signal } = controller;
    const callers = [1, 2, 3].map(() => new OneCaller(runtime, FOREVER, signal));
    for (const caller of callers) caller.watch(() => busy);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    callers[0].grant('lease');
    controller.abort();
    expect(callers.map(({ outcomes }) => outcomes)).toEqual([
      ['lease'],
      [expect.any(LockAbortedError)],
      [expect.any(LockAbortedError)],
    ]);
  });

  it('hears of its signal although other callers with that signal came and went before', () => {
    const abort = new AbortController();
    const runtime = new VirtualRuntime();
    for (const outcome of ['grant', 'refuse'] as const) {
      const earlier = new OneCaller(runtime, FOREVER, abort.signal);
      earlier.watch(() => busy);
      earlier[outcome](outcome as never);
    }
    const caller = new OneCaller(runtime, FOREVER, abort.signal);
    const reasons = reasonsOf(caller);
    expect([caller.mayLeave, caller.triesOnce]).toEqual([true, false]);
    abort.abort();
    expect(reasons).toEqual(['abort']);
  });

  it('is settled once, and reports that', () => {
    const caller = new OneCaller(new VirtualRuntime(), FOREVER);
    let settled = 0;
    caller.onSettled = () => void settled++;
    expect(caller.settled).toBe(false);
    caller.grant('lease');
    caller.refuse(busy);
    caller.grant('another');
    expect(caller.outcomes).toEqual(['lease']);
    expect([caller.settled, settled]).toEqual([true, 1]);
  });

  it('keeps its process alive for as long as its waitTime lasts', () => {
    const runtime = new VirtualRuntime();
    const caller = new OneCaller(runtime, 1);
    caller.watch(() => busy);
    expect([runtime.keepAliveTimers, caller.mayLeave]).toEqual([1, true]);
  });

  it('leaves no listener at its signal when all callers with that signal have been served', () => {
    const { signal } = new AbortController();
    const callers = [1, 2].map(() => new OneCaller(new VirtualRuntime(), FOREVER, signal));
    for (const caller of callers) caller.watch(() => busy);
    for (const caller of callers) caller.grant('lease');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('a caller that waits for a lock', () => {
  it('gets its owner id when it is needed, and keeps it', () => {
    const { services, caller } = lockScene();
    const [first, second] = [caller(), caller()];
    expect([second.owner, first.owner, second.owner]).toEqual(['me:1', 'me:2', 'me:1']);
    expect(services.newOwner()).toBe('me:3');
  });

  it('asks under the owner id of a place in line until the place is given up', () => {
    const { caller } = lockScene();
    const waiter = caller();
    waiter.ownerSpent = true;
    waiter.takePlace('me:7');
    expect([waiter.owner, waiter.ownerSpent]).toEqual(['me:7', false]);
    waiter.dropPlace('me:8');
    expect(waiter.owner).toBe('me:7');
    waiter.dropPlace('me:7');
    expect(waiter.owner).toBe('me:1');
  });

  it('needs no other owner id once it has one, and nothing of the former one is in doubt', async () => {
    const { services, caller } = lockScene();
    const waiter = caller();
    const attempt = new Attempt(services, 'lock:order', waiter.owner, waiter.terms);
    waiter.note(attempt);
    expect(waiter.doubt).toBeUndefined();
    const error = (validUntil: number) => new BackendError('no answer', 'unavailable', 'unknown', { validUntil });
    for (const validUntil of [2_000, 1_000]) {
      await attempt.outcome(Promise.reject(error(validUntil)), () => {});
      waiter.note(attempt);
    }
    expect(waiter.doubt?.until).toBe(2_000);
    waiter.ownerSpent = true;
    waiter.renewOwner();
    expect([waiter.owner, waiter.ownerSpent, waiter.doubt]).toEqual(['me:2', false, undefined]);
  });

  it('announces that the lock is busy, or that it was superseded, to those that listen', () => {
    const { runtime, caller } = lockScene();
    const waiter = caller({ group: 'orders', method: 'Orders.pay' });
    const events = new EventHub(runtime, new RecordingLogger());
    const emitted: unknown[] = [];
    const emit = events.emit.bind(events);
    events.emit = (event, details) => {
      emitted.push(event);
      emit(event, details);
    };
    const busy = waiter.busyError({ holder: 'other:1', here: false, remaining: 40 });
    expect(busy).toBeInstanceOf(LockBusyError);
    waiter.announceBusy(busy, events);
    expect(emitted).toEqual([]);
    const heard: unknown[] = [];
    events.on('busy', (event) => heard.push(event));
    waiter.announceBusy(busy, events);
    waiter.announceBusy(supersededError('order', 40, 'other:1', undefined), events);
    const common = { name: 'order', type: 'reentrant', group: 'orders', method: 'Orders.pay', holder: 'other:1' };
    expect(heard).toEqual([
      expect.objectContaining({ ...common, remainingTime: 40, superseded: false }),
      expect.objectContaining({ ...common, remainingTime: 40, superseded: true }),
    ]);
  });
});
