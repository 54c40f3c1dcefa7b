import type { Wanted } from '../../../lib/engine/several/all-or-none.js';
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
});
