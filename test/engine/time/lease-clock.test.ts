import { LeaseClock, validity } from '../../../lib/engine/time/lease-clock.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('the clock of leases', () => {
  const open = () => {
    const runtime = new VirtualRuntime();
    return { runtime, clock: new LeaseClock(runtime) };
  };

  it('counts the larger of the ages by the two clocks', () => {
    const { runtime, clock } = open();
    const since = clock.now();
    runtime.block(700);
    expect(clock.age(since)).toBe(700);
    runtime.suspend(300);
    expect(clock.age(since)).toBe(1_000);
    runtime.setWallClock(-5_000);
    expect(clock.age(since)).toBe(700);
  });

  it('reads no clock where the moment is known', () => {
    const { runtime, clock } = open();
    const since = clock.now();
    const { monotonic, wall } = since;
    runtime.block(9_000);
    expect(clock.age(since, { monotonic: monotonic + 20, wall: wall + 30 })).toBe(30);
    expect(clock.age(since, { monotonic: monotonic + 40, wall: wall + 30 })).toBe(40);
    expect(clock.left(since, 1_000, { monotonic: monotonic + 40, wall: wall + 30 })).toBe(948);
  });

  it('counts on a lease for 1 % and 2 ms less than it lasts in the backend', () => {
    const { runtime, clock } = open();
    expect([validity(30_000), validity(1_000), validity(100)]).toEqual([29_698, 988, 97]);
    const since = clock.now();
    expect(clock.left(since, 1_000)).toBe(988);
    runtime.block(987);
    expect(clock.left(since, 1_000)).toBe(1);
    runtime.suspend(2);
    expect(clock.left(since, 1_000)).toBe(-1);
  });

  it('knows a moment that is not later than a time after another one, and not earlier than that one', () => {
    const { clock } = open();
    const since = { monotonic: 5_000, wall: 70_000 };
    expect(clock.after(since, 1_000)).toEqual({ monotonic: 5_988, wall: 70_988 });
    expect(clock.after(since, 1)).toEqual(since);
  });

  it.each([
    [1_000, false],
    [1_001, true],
    [-1_000, false],
    [-1_001, true],
  ])('has diverged if the wall clock gained more than a second: %d ms', (gain, diverged) => {
    const { runtime, clock } = open();
    const since = clock.now();
    runtime.block(50_000);
    expect(clock.diverged(since)).toBe(false);
    runtime.setWallClock(gain);
    expect(clock.diverged(since)).toBe(diverged);
    expect(clock.diverged(clock.now())).toBe(false);
  });

  it.each([
    [10, false],
    [11, true],
    [-5_000, false],
  ])('says whether timers fire too late, after the wall clock gained %d ms', (gain, lag) => {
    const { runtime, clock } = open();
    const since = clock.now();
    runtime.block(50_000);
    runtime.setWallClock(gain);
    expect(clock.timersLag(since)).toBe(lag);
  });
});
