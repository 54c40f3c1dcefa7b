import type { Wake } from '../../../lib/backends/lock-backend.js';
import { TurnToAsk } from '../../../lib/engine/wait/turn-to-ask.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('the turn of a process to ask for a lock', () => {
  const setUp = () => {
    const runtime = new VirtualRuntime();
    const listeners: ((wake: Wake) => void)[] = [];
    let closed = 0;
    let retries = 0;
    const askedForTicket: string[] = [];
    const turn = new TurnToAsk(
      (listener) => {
        listeners.push(listener);
        return { ready: new Promise(() => {}), close: () => void closed++ };
      },
      runtime,
      () => void retries++,
      (holder) => {
        askedForTicket.push(holder);
        return Promise.resolve(2);
      },
    );
    const release = () => {
      for (const listener of listeners) listener({ kind: 'message' });
    };
    return { runtime, turn, listeners, release, askedForTicket, closed: () => closed, retries: () => retries };
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

  it.each([
    [1, 10],
    [2, 35],
    [3, 45],
  ])(
    'comes after that of %d other processes that listen, once it has released the lock: after %d ms',
    async (others, time) => {
      const { runtime, turn, retries } = setUp();
      turn.yieldTo(others, true);
      expect(turn.resting).toBe(true);
      expect(turn.usefulFor).toBe(others * 10);
      await runtime.advance(time);
      expect(retries()).toBe(0);
      await runtime.advance(1);
      expect(retries()).toBe(1);
    },
  );

  it('comes earlier with each release by one of the processes that go first', () => {
    const { turn, release, retries } = setUp();
    turn.yieldTo(2, true);
    release();
    expect(retries()).toBe(0);
    release();
    expect(retries()).toBe(1);
  });

  /** Waits for the lock, gets it, and sends its release, while another process listens. */
  const takeAndRelease = ({ turn, release }: ReturnType<typeof setUp>) => {
    turn.begin();
    turn.busy(5_000);
    release();
    turn.begin();
    turn.acquired();
    turn.releasing();
    turn.yieldTo(1, true);
  };

  it('is not brought forward by the message of its own release', () => {
    const world = setUp();
    const { turn, release, retries } = world;
    takeAndRelease(world);
    expect(retries()).toBe(1);
    release();
    expect(retries()).toBe(1);
    expect(turn.resting).toBe(true);
    release();
    expect(retries()).toBe(2);
  });

  it('comes with the next message if its own release published none', () => {
    const world = setUp();
    const { turn, release, retries } = world;
    takeAndRelease(world);
    turn.releasedSilently();
    release();
    expect(retries()).toBe(2);
  });

  it('is not brought forward by the message of its own release after one that published none', () => {
    const world = setUp();
    const { turn, release, retries } = world;
    turn.releasing();
    turn.releasedSilently();
    takeAndRelease(world);
    release();
    expect(retries()).toBe(1);
  });

  it('comes with the first message after a release that it sent before it listened', () => {
    const { turn, release, retries } = setUp();
    turn.begin();
    turn.acquired();
    turn.releasing();
    turn.yieldTo(0, false);
    turn.begin();
    turn.busy(5_000);
    release();
    expect(retries()).toBe(1);
  });

  it('comes at once when messages may have been missed', () => {
    const world = setUp();
    const { turn, listeners, retries } = world;
    takeAndRelease(world);
    turn.yieldTo(3, true);
    for (const listener of listeners) listener({ kind: 'resync' });
    expect(retries()).toBe(2);
  });

  it('is decided by a ticket when another process was faster after the same message', async () => {
    const { runtime, turn, release, askedForTicket, retries } = setUp();
    turn.begin();
    turn.busy(5_000, 'first:1');
    expect(askedForTicket).toEqual([]);
    release();
    turn.begin();
    turn.busy(5_000, 'second:1');
    expect(askedForTicket).toEqual(['second:1']);
    await runtime.settle();
    release();
    expect(retries()).toBe(1);
    await runtime.advance(20);
    expect(retries()).toBe(2);
  });

  it('needs no ticket when the holder is not known', () => {
    const { turn, release, askedForTicket } = setUp();
    turn.begin();
    turn.busy(5_000);
    release();
    turn.begin();
    turn.busy(5_000);
    expect(askedForTicket).toEqual([]);
  });

  it('is kept for a while for its next caller, who has to let another process go first', async () => {
    const { runtime, turn, retries } = setUp();
    turn.yieldTo(1, false);
    expect(turn.resting).toBe(false);
    turn.arrive(60_000);
    expect(turn.resting).toBe(true);
    await runtime.advance(20);
    expect(retries()).toBe(1);
  });

  it('comes for its next caller after half of the waitTime of that caller at the latest', async () => {
    const { runtime, turn, retries } = setUp();
    turn.yieldTo(4, false);
    turn.arrive(20);
    await runtime.advance(9);
    expect(retries()).toBe(0);
    await runtime.advance(5);
    expect(retries()).toBe(1);
  });

  it('comes at once when no other process listens', () => {
    const { runtime, turn, listeners } = setUp();
    turn.yieldTo(0, true);
    expect(turn.resting).toBe(false);
    expect(turn.usefulFor).toBe(0);
    turn.arrive(60_000);
    expect(turn.resting).toBe(false);
    expect(listeners).toEqual([]);
    expect(runtime.timers).toBe(0);
  });
});
