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
});
