import { RetryPause } from '../../../lib/engine/time/retry-pause.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('the pauses of a loop that asks until it is answered', () => {
  const setUp = () => {
    const runtime = new VirtualRuntime();
    const sleep = new RetryPause(runtime);
    let ended = 0;
    const start = (delay?: number) => void sleep.sleep(delay).then(() => ended++);
    return { runtime, sleep, start, ended: () => ended };
  };

  it('lasts for its delay, and keeps the process alive', async () => {
    const { runtime, start, ended } = setUp();
    start(100);
    expect(runtime.keepAliveTimers).toBe(1);
    await runtime.advance(99);
    expect(ended()).toBe(0);
    await runtime.advance(1);
    await runtime.settle();
    expect([ended(), runtime.timers]).toEqual([1, 0]);
  });

  it('ends at once when it is woken, and leaves no timer', async () => {
    const { runtime, sleep, start, ended } = setUp();
    start(100);
    sleep.wake();
    await runtime.settle();
    expect([ended(), runtime.timers]).toEqual([1, 0]);
  });

  it('is not shortened by calls before it', async () => {
    const { runtime, sleep, start, ended } = setUp();
    sleep.wake();
    start(10);
    await runtime.advance(10);
    sleep.wake();
    start(100);
    await runtime.advance(99);
    expect(ended()).toBe(1);
    await runtime.advance(1);
    await runtime.settle();
    expect(ended()).toBe(2);
  });

  it('grows from one to the next, unless its length is given', async () => {
    const { runtime, sleep, start, ended } = setUp();
    const endsWithin = async (delay: number) => {
      const before = ended();
      await runtime.advance(delay);
      await runtime.settle();
      return ended() > before;
    };
    start(); // between 25 and 50 ms
    expect([await endsWithin(24), await endsWithin(26)]).toEqual([false, true]);
    start(10);
    expect(await endsWithin(10)).toBe(true);
    start();
    expect([await endsWithin(49), await endsWithin(51)]).toEqual([false, true]);
    sleep.reset();
    start();
    expect(await endsWithin(50)).toBe(true);
  });
});
