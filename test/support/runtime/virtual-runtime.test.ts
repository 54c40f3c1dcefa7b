import { VirtualRuntime } from './virtual-runtime.js';

describe('VirtualRuntime', () => {
  it('calls timers back in the order of their time, then of their start, each at its time', async () => {
    const runtime = new VirtualRuntime();
    const calls: [string, number][] = [];
    const start = (name: string, delay: number) => runtime.timer(delay, () => calls.push([name, runtime.monotonic()]));
    start('late', 20);
    start('first', 10);
    start('second', 10);
    start('never', 10).cancel();
    await runtime.advance(15);
    expect(calls).toEqual([
      ['first', 10],
      ['second', 10],
    ]);
    expect(runtime.monotonic()).toBe(15);
    await runtime.advance(5);
    expect(calls.at(-1)).toEqual(['late', 20]);
    expect(runtime.timers).toBe(0);
  });

  it('lets promises and turns settle between two timers', async () => {
    const runtime = new VirtualRuntime();
    const order: string[] = [];
    runtime.timer(1, () => {
      void Promise.resolve().then(() => order.push('promise of the first'));
      runtime.nextTurn(() => order.push('turn of the first'));
    });
    runtime.timer(1, () => order.push('second'));
    await runtime.advance(1);
    expect(order).toEqual(['promise of the first', 'turn of the first', 'second']);
  });

  it('moves on to what settles a promise, and no further', async () => {
    const runtime = new VirtualRuntime();
    const soon = new Promise((resolve) => runtime.timer(70, () => resolve('soon')));
    runtime.timer(80, () => {});
    expect(await runtime.until(soon)).toBe('soon');
    expect(runtime.monotonic()).toBe(70);
    await expect(runtime.until(new Promise(() => {}), 1_000)).rejects.toThrow('not settled');
  });

  it('keeps timers waiting while the event loop is blocked, and stops its monotonic clock while suspended', async () => {
    const runtime = new VirtualRuntime();
    const wall = runtime.wall();
    let called = false;
    runtime.timer(10, () => {
      called = true;
    });
    runtime.block(50);
    expect(called).toBe(false);
    runtime.suspend(1_000);
    expect(runtime.monotonic()).toBe(50);
    expect(runtime.wall()).toBe(wall + 1_050);
    await runtime.advance(0);
    expect(called).toBe(true);
    expect(runtime.monotonic()).toBe(50);
  });

  it('has the same chance at every run, and another one with another seed', () => {
    const draw = (seed: number) => {
      const runtime = new VirtualRuntime(seed);
      return Array.from({ length: 100 }, () => runtime.random());
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
    expect(draw(7).every((chance) => chance >= 0 && chance < 1)).toBe(true);
  });
});
