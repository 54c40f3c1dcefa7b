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
  const among = (runtime: VirtualRuntime, waits: Record<string, () => Promise<void>>, longestHold = 5_000) => {
    const [got, given, stopped]: [[string, number][], [string, number][], string[]] = [[], [], []];
    const joined: [string, number][] = [];
    const all = Object.keys(waits).map((name) => {
      const giveBack = async () => void given.push([name, runtime.monotonic()]);
      return { name, giveBack, stopWaiting: () => void stopped.push(name) } as unknown as Wanted;
    });
    const waitFor = async ({ name }: Wanted) => {
      joined.push([name, runtime.monotonic()]);
      await waits[name]();
      got.push([name, runtime.monotonic()]);
    };
    const pauses: number[] = [];
    const sleep = (pause: number) => {
      pauses.push(pause);
      return new Promise<void>((resolve) => void runtime.timer(pause, resolve));
    };
    const turn = new HoldAndWait(runtime, { all, longestHold, waitFor, sleep });
    return { turn, all, got, given, stopped, joined, pauses };
  };
  const pass = (runtime: VirtualRuntime, time: number) =>
    new Promise<void>((resolve) => void runtime.timer(time, resolve));

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

  it('counts that second from the moment at which all locks were given back', async () => {
    const runtime = new VirtualRuntime();
    runtime.random = () => 0;
    let waits = 0;
    const { turn, all, got } = among(runtime, {
      a: async () => {},
      b: () => pass(runtime, waits++ === 0 ? 1_100 : 10),
    });
    const { giveBack } = all[0];
    all[0].giveBack = () => pass(runtime, 300).then(giveBack);
    await runtime.until(turn.run());
    expect(got.filter(([name]) => name === 'a')).toEqual([
      ['a', 0],
      ['a', 2_300],
    ]);
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

  describe('and waits in a queue for longer than it may hold locks', () => {
    const open = (waits: number[], longestHold?: number) => {
      const runtime = new VirtualRuntime();
      runtime.random = () => 0;
      const watched = among(
        runtime,
        { a: async () => {}, b: () => pass(runtime, waits.shift() as number) },
        longestHold,
      );
      const inB = () => watched.joined.filter(([name]) => name === 'b').map(([, at]) => at);
      return { runtime, inB, ...watched };
    };

    it('keeps its place there, and gets all locks when its turn comes while it holds the others', async () => {
      const { runtime, turn, inB, got, given } = open([2_500]);
      await runtime.until(turn.run());
      expect(inB()).toEqual([0]);
      expect(got).toEqual([
        ['a', 0],
        ['a', 2_000],
        ['b', 2_500],
      ]);
      expect(given.every(([, at]) => at === 1_000)).toBe(true);
      expect(runtime.timers).toBe(0);
    });

    it('passes the turn on that comes while it holds nothing, and joins the queue again', async () => {
      const { runtime, turn, inB, got, given } = open([1_500, 1_200]);
      await runtime.until(turn.run());
      expect(inB()).toEqual([0, 1_500]);
      expect(given).toContainEqual(['b', 1_500]);
      expect(got.slice(-2)).toEqual([
        ['a', 2_000],
        ['b', 2_700],
      ]);
    });

    it('does not join the queue again at once if it has waited there for a second at most', async () => {
      const { runtime, turn, inB, given } = open([800, 100], 500);
      await runtime.until(turn.run());
      expect(given).toContainEqual(['b', 800]);
      expect(inB()).toEqual([0, 1_000]);
    });

    it('is refused if the lock of the turn that it passes on cannot be given back', async () => {
      const { runtime, turn, all } = open([1_500, 60_000]);
      const failure = new Error('no answer');
      const { giveBack } = all[1];
      all[1].giveBack = () => (runtime.monotonic() === 1_500 ? Promise.reject(failure) : giveBack());
      const refused = expect(runtime.until(turn.run())).rejects.toBe(failure);
      await refused;
      expect(runtime.monotonic()).toBe(1_500);
    });

    it('may try again after a lock could not be given back', async () => {
      const runtime = new VirtualRuntime();
      const stopped = new Map<string, (error: Error) => void>();
      let isBusy = true;
      const { turn, all } = among(runtime, {
        a: async () => {},
        b: () =>
          new Promise((resolve, reject) => {
            if (isBusy) stopped.set('b', reject);
            else resolve();
          }),
      });
      all[1].stopWaiting = (error) => stopped.get('b')?.(error);
      const failure = new Error('no answer');
      const { giveBack } = all[0];
      all[0].giveBack = () => Promise.reject(failure);
      await expect(runtime.until(turn.run())).rejects.toBe(failure);
      expect(runtime.monotonic()).toBe(1_000);
      all[0].giveBack = giveBack;
      isBusy = false;
      await runtime.until(turn.run(), 100);
      expect(runtime.monotonic()).toBe(1_000);
    });

    it('gives back a lock whose turn comes after it was refused elsewhere, and joins no queue again', async () => {
      const runtime = new VirtualRuntime();
      runtime.random = () => 0;
      const refusal = new Error('refused');
      let waitsForA = 0;
      const { turn, joined, given } = among(runtime, {
        a: async () => {
          if (waitsForA++ === 0) return;
          await pass(runtime, 500);
          throw refusal;
        },
        b: () => pass(runtime, 5_000),
      });
      await expect(runtime.until(turn.run())).rejects.toBe(refusal);
      expect(runtime.monotonic()).toBe(2_500);
      const before = joined.length;
      await runtime.advance(10_000);
      expect(given).toContainEqual(['b', 5_000]);
      expect(joined).toHaveLength(before);
    });
  });

  it.each([
    [0, 5_000, 1_000],
    [1, 5_000, 1_500],
    [0, 200, 200],
    [0.5, 200, 250],
  ])(
    'pauses for as long as it may hold locks, and for up to half as long more: %d of %i ms',
    async (random, longestHold, pause) => {
      const runtime = new VirtualRuntime();
      runtime.random = () => random;
      let waits = 0;
      const { turn, given, pauses } = among(
        runtime,
        { a: async () => {}, b: () => pass(runtime, waits++ === 0 ? 1_000_000 : 0) },
        longestHold,
      );
      void turn.run();
      await runtime.advance(1_100);
      expect(pauses[0]).toBe(pause);
      expect(given[0]).toEqual(['a', Math.min(1_000, longestHold)]);
    },
  );
});
