import type { Wanted } from '../../../lib/engine/several/hold-and-wait.js';
import { HoldAndWait } from '../../../lib/engine/several/hold-and-wait.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('a caller of several locks that was passed over', () => {
  const start = () => {
    const runtime = new VirtualRuntime();
    const noWait = async () => {};
    return { runtime, turn: new HoldAndWait(runtime, { all: [], longestHold: 1_000, waitFor: noWait, sleep: noWait }) };
  };

  it('holds locks while it waits for others after five failed attempts, however quick they were', () => {
    const { turn } = start();
    for (let failed = 0; failed < 5; failed++) {
      expect(turn.due).toBe(false);
      expect(turn.noteFailedAttempt()).toBe(failed);
    }
    expect(turn.due).toBe(true);
  });

  it('holds locks while it waits for others after two seconds, however few attempts there were', async () => {
    const { runtime, turn } = start();
    turn.noteFailedAttempt();
    await runtime.advance(1_900);
    expect(turn.due).toBe(false);
    await runtime.advance(100);
    expect(turn.due).toBe(true);
  });

  it('gets one lock after the other, and gives none back when it has got them all', async () => {
    const runtime = new VirtualRuntime();
    const given: string[] = [];
    const all = ['a', 'b'].map((name) => {
      const giveBack = async () => void given.push(name);
      return { name, giveBack, stopWaiting: () => {} } as unknown as Wanted;
    });
    const got: string[] = [];
    const waitFor = async ({ name }: Wanted) => {
      await new Promise<void>((resolve) => void runtime.timer(400, resolve));
      got.push(name);
    };
    const sleep = (pause: number) => new Promise<void>((resolve) => void runtime.timer(pause, resolve));
    await runtime.until(new HoldAndWait(runtime, { all, longestHold: 1_000, waitFor, sleep }).run());
    expect(got).toEqual(['a', 'b']);
    expect(given).toEqual([]);
    expect(runtime.timers).toBe(0);
  });

  /** A caller of these locks, whose waits settle as `waits` says. `got` and `given` are the times of both. */
  const among = (runtime: VirtualRuntime, waits: Record<string, () => Promise<void>>) => {
    const [got, given, stopped]: [[string, number][], [string, number][], string[]] = [[], [], []];
    const all = Object.keys(waits).map((name) => {
      const giveBack = async () => void given.push([name, runtime.monotonic()]);
      return { name, giveBack, stopWaiting: () => void stopped.push(name) } as unknown as Wanted;
    });
    const waitFor = async ({ name }: Wanted) => {
      await waits[name]();
      got.push([name, runtime.monotonic()]);
    };
    const sleep = (pause: number) => new Promise<void>((resolve) => void runtime.timer(pause, resolve));
    return { turn: new HoldAndWait(runtime, { all, longestHold: 5_000, waitFor, sleep }), got, given, stopped };
  };

  it('gives its locks back after a second, and holds none for at least another second', async () => {
    const runtime = new VirtualRuntime();
    let waits = 0;
    const { turn, got, given } = among(runtime, {
      a: async () => {},
      b: () => new Promise((resolve) => void runtime.timer(waits++ === 0 ? 1_100 : 10, resolve)),
    });
    await runtime.until(turn.run());
    expect(given[0]).toEqual(['a', 1_000]);
    const [first, second] = got.filter(([name]) => name === 'a').map(([, at]) => at);
    expect(first).toBe(0);
    expect(second).toBeGreaterThanOrEqual(2_000);
    expect(second).toBeLessThanOrEqual(2_500);
  });

  it('leaves all queues when it is refused in one of them', async () => {
    const runtime = new VirtualRuntime();
    const refused = new Error('refused');
    // Free at first, and busy at the second attempt.
    const answers = [Promise.resolve()];
    const { turn, stopped } = among(runtime, {
      a: () => answers.pop() ?? new Promise(() => {}),
      b: () => new Promise((_, reject) => void runtime.timer(4_000, () => reject(refused))),
    });
    await expect(runtime.until(turn.run())).rejects.toThrow(refused);
    expect(stopped).toContain('a');
  });
});
