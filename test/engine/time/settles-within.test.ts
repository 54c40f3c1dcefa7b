import { settlesWithin } from '../../../lib/engine/time/settles-within.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { errorOf, latch } from '../../support/section.js';

describe('work that has a limited time', () => {
  it('has settled in time, and leaves no timer', async () => {
    const runtime = new VirtualRuntime();
    const work = latch();
    const settles = settlesWithin(100, work.promise, runtime);
    expect(runtime.keepAliveTimers).toBe(1);
    await runtime.advance(99);
    work.open();
    expect(await settles).toBe(true);
    expect(runtime.timers).toBe(0);
  });

  it('has not settled when its time is over', async () => {
    const runtime = new VirtualRuntime();
    const settles = settlesWithin(100, new Promise(() => {}), runtime);
    let result: boolean | undefined;
    void settles.then((settled) => {
      result = settled;
    });
    await runtime.advance(99);
    await runtime.settle();
    expect(result).toBeUndefined();
    await runtime.advance(1);
    expect(await settles).toBe(false);
  });

  it('has settled if there is none', async () => {
    expect(await settlesWithin(100, undefined, new VirtualRuntime())).toBe(true);
  });

  it('has no time if the time was over before', async () => {
    const delays: number[] = [];
    const timer = (delay: number, callback: () => void) => {
      delays.push(delay);
      callback();
      return { cancel: () => {} };
    };
    expect(await settlesWithin(-5, new Promise(() => {}), { timer })).toBe(false);
    expect(delays).toEqual([0]);
  });

  it('fails as the work does, and leaves no timer', async () => {
    const runtime = new VirtualRuntime();
    const failed = settlesWithin(100, Promise.reject(new Error('broken')), runtime);
    expect((await errorOf(failed)).message).toBe('broken');
    expect(runtime.timers).toBe(0);
  });
});
