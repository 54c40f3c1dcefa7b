import type { Timer } from '../../../lib/backends/runtime.js';
import { ReschedulableTimer } from '../../../lib/engine/time/reschedulable-timer.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

class StartedTimers extends VirtualRuntime {
  started = 0;

  override timer(delay: number, callback: () => void): Timer {
    this.started++;
    return super.timer(delay, callback);
  }
}

describe('a timer that can be brought forward', () => {
  const setUp = () => {
    const runtime = new StartedTimers();
    const fired: number[] = [];
    const timer = new ReschedulableTimer(runtime, () => fired.push(runtime.monotonic()));
    return { runtime, timer, fired };
  };

  it('fires once, at the earliest of its times', async () => {
    const { runtime, timer, fired } = setUp();
    timer.schedule(100);
    timer.bringForward(30);
    timer.bringForward(60);
    await runtime.advance(1_000);
    expect(fired).toEqual([30]);
    expect(timer.isScheduled).toBe(false);
  });

  it('is not started anew for a time that is not earlier', async () => {
    const { runtime, timer, fired } = setUp();
    timer.schedule(100);
    timer.bringForward(100);
    timer.bringForward(150);
    expect(runtime.started).toBe(1);
    await runtime.advance(1_000);
    expect(fired).toEqual([100]);
  });

  it('is not started by being brought forward, nor fires after it was cancelled', async () => {
    const { runtime, timer, fired } = setUp();
    timer.bringForward(10);
    timer.schedule(20);
    timer.cancel();
    timer.bringForward(10);
    expect(timer.isScheduled).toBe(false);
    await runtime.advance(1_000);
    expect(fired).toEqual([]);
  });
});
