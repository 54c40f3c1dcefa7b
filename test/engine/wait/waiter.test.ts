import { getEventListeners } from 'node:events';
import { LockAbortedError } from '../../../lib/engine/errors.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { Caller, type LeaveReason } from '../../../lib/engine/wait/caller.js';
import { ms } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

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

  it('leaves no listener at its signal when all callers with that signal have been served', () => {
    const { signal } = new AbortController();
    const callers = [1, 2].map(() => new OneCaller(new VirtualRuntime(), FOREVER, signal));
    for (const caller of callers) caller.watch(() => busy);
    for (const caller of callers) caller.grant('lease');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
