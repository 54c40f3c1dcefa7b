import type { Wake } from '../../../lib/backends/lock-backend.js';
import { TurnToAsk } from '../../../lib/engine/waiting/turn-to-ask.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('the turn of a process to ask for a lock', () => {
  const setUp = () => {
    const runtime = new VirtualRuntime();
    const listeners: ((wake: Wake) => void)[] = [];
    let closed = 0;
    let retries = 0;
    const turn = new TurnToAsk(
      (listener) => {
        listeners.push(listener);
        return { ready: new Promise(() => {}), close: () => void closed++ };
      },
      runtime,
      () => void retries++,
    );
    const release = () => {
      for (const listener of listeners) listener({ kind: 'message' });
    };
    return { runtime, turn, listeners, release, closed: () => closed, retries: () => retries };
  };

  it('comes when the lease of the holder has ended, if no message arrives before', async () => {
    const { runtime, turn, retries } = setUp();
    turn.begin();
    turn.busy(5_000);
    expect(turn.resting).toBe(true);
    expect(runtime.keepAliveTimers).toBe(1);
    await runtime.advance(4_999);
    expect(retries()).toBe(0);
    await runtime.advance(10);
    expect(retries()).toBe(1);
    expect(turn.resting).toBe(false);
    expect(runtime.timers).toBe(0);
  });

  it('comes with a message only, if the lease of the holder has no end', async () => {
    const { runtime, turn, release, retries } = setUp();
    turn.begin();
    turn.busy(-1);
    expect(runtime.timers).toBe(0);
    await runtime.advance(60_000);
    expect(retries()).toBe(0);
    release();
    expect(retries()).toBe(1);
  });

  it('needs one subscription, however often the lock is busy, which is closed in the end', () => {
    const { turn, listeners, release, closed } = setUp();
    for (let i = 0; i < 3; i++) {
      turn.begin();
      turn.busy(5_000);
      release();
    }
    expect(listeners).toHaveLength(1);
    turn.close();
    expect(closed()).toBe(1);
  });

  it('is not brought forward while a request is under way', () => {
    const { turn, retries } = setUp();
    turn.recheck();
    turn.begin();
    turn.recheck();
    expect(retries()).toBe(0);
    turn.busy(5_000);
    turn.recheck();
    expect(retries()).toBe(1);
  });

  it.each([1, 2])(
    'comes after that of %d other processes that listen, once it has released the lock',
    async (others) => {
      const { runtime, turn, retries } = setUp();
      turn.yieldTo(others, true);
      expect(turn.resting).toBe(true);
      expect(turn.yieldRemaining).toBe(others * 10);
      await runtime.advance(others * 10 - 1);
      expect(retries()).toBe(0);
      await runtime.advance(50);
      expect(retries()).toBe(1);
    },
  );

  it('is kept for a while for its next caller, who has to let another process go first', async () => {
    const { runtime, turn, retries } = setUp();
    turn.yieldTo(1, false);
    expect(turn.resting).toBe(false);
    turn.arrive(60_000);
    expect(turn.resting).toBe(true);
    await runtime.advance(20);
    expect(retries()).toBe(1);
  });

  it('comes at once when no other process listens', () => {
    const { runtime, turn, listeners } = setUp();
    turn.yieldTo(0, true);
    expect(turn.resting).toBe(false);
    expect(turn.yieldRemaining).toBe(0);
    turn.arrive(60_000);
    expect(turn.resting).toBe(false);
    expect(listeners).toEqual([]);
    expect(runtime.timers).toBe(0);
  });
});
