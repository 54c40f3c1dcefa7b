import { type Busy, HEAD_START, type Wake } from '../../../lib/backends/lock-backend.js';
import { WhenToAsk } from '../../../lib/engine/wait/when-to-ask.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { latch } from '../../support/section.js';

describe('when to ask again', () => {
  it('depends on the release of the present holder, whatever the type of the one before', () => {
    const listeners = new Map<Busy['heldAs'], (wake: Wake) => void>();
    let retries = 0;
    const when = new WhenToAsk(
      (listener, heldAs) => {
        listeners.set(heldAs, listener);
        return { ready: new Promise(() => {}), close: () => void listeners.delete(heldAs) };
      },
      new VirtualRuntime(),
      () => void retries++,
    );
    for (const heldAs of ['write', 'reentrant', 'write'] as const) {
      when.begin();
      when.busy(-1, heldAs);
      expect(new Set(listeners.keys())).toEqual(new Set([undefined, heldAs]));
    }
    listeners.get('write')?.({ kind: 'message' });
    expect(retries).toBe(1);
  });

  it.each(['acquired', 'busy'] as const)('takes a failure after an answer for the first one: %s', (answer) => {
    const subscribe = () => ({ ready: new Promise<void>(() => {}), close: () => {} });
    const when = new WhenToAsk(subscribe, new VirtualRuntime(), () => {});
    for (let outage = 0; outage < 2; outage++) {
      when.begin();
      expect([when.failed(), when.failed()]).toEqual([true, false]);
      when.begin();
      when[answer](-1);
    }
  });

  describe('after a release that leaves the lock to others at first', () => {
    const free: Wake = { kind: 'message', lock: 'free' };
    const change: Wake = { kind: 'message' };

    /** @param messages arrive while a request is under way that finds the lock busy */
    const busyAfter = async (...messages: readonly Wake[]) => {
      const runtime = new VirtualRuntime();
      let hear = (_wake: Wake) => {};
      let retries = 0;
      const subscribe = (listener: typeof hear) => {
        hear = listener;
        return { ready: new Promise<void>(() => {}), close: () => {} };
      };
      const when = new WhenToAsk(subscribe, runtime, () => void retries++);
      when.begin();
      when.busy(-1);
      hear(change);
      const before = when.begin();
      for (const message of messages) hear(message);
      const rests = when.busy(-1, undefined, before);
      return { runtime, when, rests, hear, retries: () => retries - 1 };
    };

    it('waits for their head start, once', async () => {
      const { runtime, rests, hear, retries } = await busyAfter(free);
      expect(rests).toBe(true);
      await runtime.advance(HEAD_START - 1);
      hear(free);
      expect(retries()).toBe(0);
      await runtime.advance(2);
      expect(retries()).toBe(1);
    });

    it('asks at once after another change, whether it has heard of it before its answer or after', async () => {
      expect((await busyAfter(free, change)).rests).toBe(false);
      const { hear, retries } = await busyAfter(free);
      hear(change);
      expect(retries()).toBe(1);
    });

    it('forgets it with the next request', async () => {
      const { runtime, when, retries } = await busyAfter(free);
      await runtime.advance(HEAD_START + 1);
      when.begin();
      expect(when.busy(-1)).toBe(true);
      await runtime.advance(1_000);
      expect(retries()).toBe(1);
    });
  });
});

describe('what decides when to ask again', () => {
  const message: Wake = { kind: 'message' };
  const free: Wake = { kind: 'message', lock: 'free' };
  const resync: Wake = { kind: 'resync' };

  /** @param spread see WhenToAsk */
  const setUp = (spread = 0) => {
    const runtime = new VirtualRuntime();
    const subscriptions: {
      heldAs: Busy['heldAs'];
      hear: (wake: Wake) => void;
      confirm(): Promise<void>;
      closed: number;
    }[] = [];
    const tries: number[] = [];
    const when = new WhenToAsk(
      (hear, heldAs) => {
        const { promise, open } = latch();
        const confirm = () => {
          open();
          return runtime.settle();
        };
        const subscription = { heldAs, hear, confirm, closed: 0 };
        subscriptions.push(subscription);
        return { ready: promise, close: () => void subscription.closed++ };
      },
      runtime,
      () => void tries.push(runtime.monotonic()),
      spread,
    );
    /** A request that finds the lock busy. */
    const busy = (remaining = -1, heldAs?: Busy['heldAs']) => {
      when.begin();
      return when.busy(remaining, heldAs);
    };
    const closed = () => subscriptions.map(({ closed }) => closed);
    return { runtime, when, subscriptions, tries, busy, closed };
  };

  it('lets the first request be sent, and a request beside it, but none while it rests', () => {
    const { when, busy } = setUp();
    expect(when.resting).toBe(false);
    when.begin();
    expect(when.resting).toBe(false);
    expect(busy()).toBe(true);
    expect(when.resting).toBe(true);
    when.begin();
    expect(when.resting).toBe(true);
  });

  describe('tries again', () => {
    it('a millisecond after the end of the lease, in a timer that keeps the process alive', async () => {
      const { runtime, when, tries, busy } = setUp();
      busy(1_000);
      expect(runtime.keepAliveTimers).toBe(1);
      await runtime.advance(1_000);
      expect(tries).toEqual([]);
      await runtime.advance(2);
      expect(tries).toHaveLength(1);
      expect([when.resting, runtime.timers]).toEqual([false, 0]);
    });

    it('right after a lease that ends now, and without a timer if the end is unknown', async () => {
      const { runtime, tries, busy } = setUp();
      busy(0);
      await runtime.advance(2);
      expect(tries).toHaveLength(1);
      busy(-1);
      expect(runtime.timers).toBe(0);
    });

    it('after the latest answer, not after one before', async () => {
      const { runtime, tries, busy } = setUp();
      busy(100);
      busy(500);
      expect(runtime.timers).toBe(1);
      await runtime.advance(500);
      expect(tries).toEqual([]);
      await runtime.advance(2);
      expect(tries).toHaveLength(1);
    });

    it('when a message comes, once, and leaves no timer', async () => {
      const { runtime, subscriptions, tries, busy } = setUp();
      busy(1_000);
      subscriptions[0].hear(message);
      subscriptions[0].hear(message);
      expect(tries).toHaveLength(1);
      expect(runtime.timers).toBe(0);
    });

    it('when it listens, because a message may have been missed before', async () => {
      const { when, subscriptions, tries, busy } = setUp();
      busy();
      expect(when.listens).toBe(false);
      await subscriptions[0].confirm();
      expect([when.listens, tries.length]).toEqual([true, 1]);
    });

    it('when it hears the release of a holder of another type, and when it listens to that', async () => {
      const { subscriptions, tries, busy } = setUp(10);
      busy(-1, 'write');
      expect(subscriptions.map(({ heldAs }) => heldAs)).toEqual(['write', undefined]);
      await subscriptions[0].confirm();
      expect(tries).toHaveLength(1);
      busy(-1, 'write');
      subscriptions[0].hear(message);
      expect(tries).toHaveLength(2);
      expect(subscriptions).toHaveLength(2);
    });

    it('when it is asked to', () => {
      const { when, tries, busy } = setUp();
      when.recheck();
      expect(tries).toEqual([]);
      busy();
      when.recheck();
      expect(tries).toHaveLength(1);
    });
  });

  it('does not rest after a busy answer if a message came during the request', async () => {
    const { when, subscriptions, busy } = setUp();
    busy();
    await subscriptions[0].confirm();
    when.begin();
    subscriptions[0].hear(message);
    expect(when.busy(1_000)).toBe(false);
    expect(when.resting).toBe(false);
    expect(busy()).toBe(true);
  });

  it('rests after the first busy answer, because it does not listen before', () => {
    const { when } = setUp();
    const before = when.begin();
    when.recheck();
    expect(when.busy(1_000, undefined, before)).toBe(true);
  });

  it('does not rest after an answer to a request that is older than a message, nor after one beside it', () => {
    const { when, subscriptions, busy } = setUp();
    busy();
    const older = when.begin();
    subscriptions[0].hear(message);
    const newer = when.begin();
    expect(when.busy(-1, undefined, older)).toBe(false);
    expect(when.busy(-1, undefined, newer)).toBe(false);
    expect(busy()).toBe(true);
  });

  it('stops listening to a holder of another type when the lock is held as usual, or acquired', () => {
    const { when, busy, closed } = setUp();
    busy(-1, 'write');
    busy();
    expect(closed()).toEqual([1, 0]);
    busy(-1, 'write');
    when.acquired();
    expect(closed()).toEqual([1, 0, 1]);
  });

  it('does not try again because of a subscription that it has given up', async () => {
    const { when, subscriptions, tries, busy } = setUp();
    busy(-1, 'write');
    busy();
    await subscriptions[0].confirm();
    expect(tries).toEqual([]);
    when.close();
    busy();
    await subscriptions[1].confirm();
    expect([when.listens, tries.length]).toEqual([false, 0]);
    await subscriptions[2].confirm();
    expect([when.listens, tries.length]).toEqual([true, 1]);
  });

  describe('after a request without an answer', () => {
    /** @returns the pause after which it tries again */
    const pause = async ({ runtime, when, tries }: ReturnType<typeof setUp>) => {
      const [start, before] = [runtime.monotonic(), tries.length];
      when.begin();
      when.failed();
      expect([when.resting, runtime.keepAliveTimers]).toEqual([true, 1]);
      while (tries.length === before) await runtime.advance(1);
      return tries[before] - start;
    };

    it.each(['acquired', 'busy'] as const)('pauses longer each time, until there is an answer: %s', async (answer) => {
      const scene = setUp();
      const pauses = [await pause(scene), await pause(scene), await pause(scene), await pause(scene)];
      expect(pauses[0]).toBeLessThanOrEqual(51);
      expect(pauses[3]).toBeGreaterThanOrEqual(200);
      scene.when.begin();
      scene.when[answer](-1);
      expect(await pause(scene)).toBeLessThanOrEqual(51);
    });

    it('tries again when a message comes during the pause', () => {
      const { when, subscriptions, tries, busy } = setUp();
      busy();
      when.begin();
      when.failed();
      subscriptions[0].hear(message);
      expect(tries).toHaveLength(1);
    });
  });

  describe('if a message wakes others as well', () => {
    it('tries within a short time, at random', async () => {
      const { runtime, when, subscriptions, tries, busy } = setUp(10);
      const times = new Set<number>();
      for (let i = 0; i < 20; i++) {
        busy();
        const start = runtime.monotonic();
        subscriptions[0].hear(message);
        expect([tries.length, when.resting]).toEqual([i, true]);
        subscriptions[0].hear(message); // does not begin again
        expect(runtime.timers).toBe(1);
        await runtime.advance(11);
        expect(tries).toHaveLength(i + 1);
        times.add(Math.round(tries[i] - start));
      }
      expect(times.size).toBeGreaterThan(3);
    });

    it('does not try later because another message comes meanwhile', async () => {
      const { runtime, subscriptions, tries, busy } = setUp(10);
      runtime.random = () => 0.99;
      busy();
      subscriptions[0].hear(message);
      await runtime.advance(8);
      subscriptions[0].hear(message);
      await runtime.advance(4);
      expect(tries).toHaveLength(1);
    });

    it('does not wait while a request is under way, but asks at once after it', () => {
      const { when, runtime, subscriptions, busy } = setUp(10);
      busy();
      when.recheck();
      when.begin();
      subscriptions[0].hear(message);
      expect([when.resting, runtime.timers]).toEqual([false, 0]);
      expect([when.busy(-1), when.resting]).toEqual([false, false]);
    });

    it('does not wait any longer when a request beside it has an older answer', () => {
      const { when, runtime, subscriptions } = setUp(10);
      const [first, second] = [when.begin(), when.begin()];
      when.busy(-1, undefined, first);
      subscriptions[0].hear(message);
      expect([when.resting, runtime.timers]).toEqual([true, 1]);
      expect(when.busy(-1, undefined, second)).toBe(false);
      expect([when.resting, runtime.timers]).toEqual([false, 0]);
    });

    it('tries at once when it listens', async () => {
      const { subscriptions, tries, busy } = setUp(10);
      busy();
      await subscriptions[0].confirm();
      expect(tries).toHaveLength(1);
    });

    it('tries at once if messages may have been lost', () => {
      const { subscriptions, tries, busy } = setUp(10);
      busy();
      subscriptions[0].hear(resync);
      expect(tries).toHaveLength(1);
    });

    it('lets the others go first after a release of its own, and listens', async () => {
      const { runtime, when, subscriptions, tries } = setUp(10);
      when.begin();
      when.acquired();
      when.standBack();
      expect([when.resting, subscriptions.length]).toEqual([true, 1]);
      await runtime.advance(10);
      expect(tries).toEqual([]);
      await runtime.advance(2);
      expect(tries).toHaveLength(1);
    });
  });

  describe('after a release that leaves the lock to others at first', () => {
    it('lets them go first while it rests, but does not wait for them twice', async () => {
      const { runtime, subscriptions, tries, busy } = setUp();
      busy();
      subscriptions[0].hear(free);
      await runtime.advance(HEAD_START - 1);
      subscriptions[0].hear(free);
      await runtime.advance(3);
      expect(tries).toHaveLength(1);
    });

    it('does not wait while nobody asks, nor while a request is under way', async () => {
      const { runtime, when, subscriptions, busy } = setUp();
      busy();
      subscriptions[0].hear(message);
      subscriptions[0].hear(free);
      expect([when.resting, runtime.timers]).toEqual([false, 0]);
      when.begin();
      subscriptions[0].hear(free);
      expect([when.resting, runtime.timers]).toEqual([false, 0]);
    });
  });

  it('is open when nobody waits any more, or the lock was acquired, and has no timer', () => {
    const { runtime, when, busy } = setUp();
    busy(1_000);
    when.onEmpty();
    expect([when.resting, runtime.timers]).toEqual([false, 0]);
    busy(1_000);
    when.acquired();
    expect([when.resting, runtime.timers]).toEqual([false, 0]);
  });

  it('is open after the head start of others when nobody waits any more, although the lock was busy for longer', async () => {
    const { runtime, when, busy } = setUp();
    busy(1_000);
    when.standBack(HEAD_START);
    busy(1_000);
    when.onEmpty();
    expect(when.resting).toBe(true);
    await runtime.advance(HEAD_START + 2);
    expect(when.resting).toBe(false);
  });

  describe('is useful for the next caller', () => {
    /** Has waited for the lock, and got it. */
    const served = async () => {
      const scene = setUp();
      scene.busy();
      await scene.subscriptions[0].confirm();
      scene.when.begin();
      scene.when.acquired();
      return scene;
    };

    it('for a second after it got a lock that others had held', async () => {
      const { runtime, when } = await served();
      expect(when.usefulFor).toBe(1_000);
      await runtime.advance(400);
      expect(when.usefulFor).toBe(600);
      when.begin();
      when.acquired(); // nobody else held the lock
      expect(when.usefulFor).toBe(600);
    });

    it('only if it listens', () => {
      const { when, busy } = setUp();
      busy();
      when.acquired();
      expect(when.usefulFor).toBe(0);
    });

    it('not if nobody else held the lock', async () => {
      const { when, subscriptions } = setUp();
      when.standBack();
      await subscriptions[0].confirm();
      when.begin();
      when.acquired();
      expect(when.usefulFor).toBeLessThanOrEqual(0);
    });

    it('and reports when it is so no more, which keeps no process alive', async () => {
      const { runtime, when, busy } = await served();
      busy(5_000);
      let useless = 0;
      when.whenUseless(() => void useless++);
      expect([runtime.timers, runtime.keepAliveTimers]).toEqual([1, 0]);
      await runtime.advance(999);
      expect(useless).toBe(0);
      await runtime.advance(2);
      expect(useless).toBe(1);
    });

    it('until a request begins to rest again', async () => {
      const { runtime, when, busy } = await served();
      let useless = 0;
      when.whenUseless(() => void useless++);
      busy(5_000);
      await runtime.advance(2_000);
      expect(useless).toBe(0);
    });
  });

  it('leaves no subscription and no timer when it is closed', async () => {
    const { runtime, when, subscriptions, busy, closed } = setUp();
    busy(1_000, 'write');
    await subscriptions[1].confirm();
    busy(1_000, 'write');
    when.close();
    expect([closed(), runtime.timers, when.listens, when.resting]).toEqual([[1, 1], 0, false, false]);
    when.close();
    expect(closed()).toEqual([1, 1]);
  });
});
