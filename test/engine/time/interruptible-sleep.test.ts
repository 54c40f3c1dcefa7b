import { InterruptibleSleep } from '../../../lib/engine/time/interruptible-sleep.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('a sleep that can be ended early', () => {
  const setUp = () => {
    const runtime = new VirtualRuntime();
    const sleep = new InterruptibleSleep(runtime);
    let ended = 0;
    const start = (delay: number) => void sleep.sleep(delay).then(() => ended++);
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
});
