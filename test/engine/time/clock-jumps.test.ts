import { ClockJumps } from '../../../lib/engine/time/clock-jumps.js';
import { LeaseClock } from '../../../lib/engine/time/lease-clock.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('jumps of the clocks', () => {
  const open = () => {
    const runtime = new VirtualRuntime();
    const clock = new LeaseClock(runtime);
    return { runtime, clock, jumps: new ClockJumps(clock) };
  };
  const nothing = { timersLag: false, diverged: false };

  it('are noticed once, from the moment on at which the comparison begins', async () => {
    const { runtime, clock, jumps } = open();
    jumps.start(clock.now());
    await runtime.advance(500);
    runtime.suspend(1_001);
    expect(jumps.compare()).toEqual({ timersLag: true, diverged: true });
    await runtime.advance(500);
    expect(jumps.compare()).toEqual(nothing);
    runtime.setWallClock(-1_001);
    expect(jumps.compare()).toEqual({ timersLag: false, diverged: true });
  });

  it('let timers lag when they are small', () => {
    const { runtime, clock, jumps } = open();
    jumps.start(clock.now());
    runtime.suspend(11);
    expect(jumps.compare()).toEqual({ timersLag: true, diverged: false });
    runtime.suspend(9);
    expect(jumps.compare()).toEqual(nothing);
  });

  it('are noticed although the comparison is begun once more', () => {
    const { runtime, clock, jumps } = open();
    jumps.start(clock.now());
    runtime.suspend(5_000);
    jumps.start(clock.now());
    expect(jumps.compare().diverged).toBe(true);
  });

  it('are not noticed while the comparison has not begun, or has ended', () => {
    const { runtime, clock, jumps } = open();
    runtime.suspend(5_000);
    expect(jumps.compare()).toEqual(nothing);
    jumps.start(clock.now());
    jumps.stop();
    runtime.suspend(5_000);
    expect(jumps.compare()).toEqual(nothing);
  });

  it('have happened since all moments before they were noticed', async () => {
    const { runtime, clock, jumps } = open();
    const before = clock.now();
    jumps.start(before);
    expect(jumps.haveHappenedSince(before)).toBe(false);
    await runtime.advance(100);
    runtime.suspend(5_000);
    jumps.compare();
    expect(jumps.haveHappenedSince(before)).toBe(true);
    expect(jumps.haveHappenedSince(clock.now())).toBe(false);
  });
});
