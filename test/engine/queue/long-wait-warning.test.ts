import { LinkedQueue } from '../../../lib/engine/collections/linked-queue.js';
import type { LockWaiter } from '../../../lib/engine/hold/held-lock.js';
import { LongWaitWarning } from '../../../lib/engine/queue/long-wait-warning.js';
import type { Services } from '../../../lib/engine/services.js';
import { openVirtualWorld, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('the warning of a wait of over 30 s', () => {
  const world = openVirtualWorld();

  it.each([
    [3, 'tells how many callers wait', /\b3 callers\b/],
    [1, 'speaks of one caller when nobody else waits', /^A caller\b/],
  ])('for %i: %s', async (count, _, expected) => {
    const [holder, { locks, runtime, logger }] = [await world.process(), await world.process()];
    const held = await holder.locks.acquire('order');
    const waiting = Array.from({ length: count }, () => locks.withLock('order', () => {}));
    await runtime.advance(40_000);
    expect(logger.warnings).toEqual([expect.stringMatching(expected)]);
    await held.release();
    await runtime.until(Promise.all(waiting));
  });
});

describe('a queue in which callers begin to wait', () => {
  it('is soon mentioned in the record of this client, although the process holds no lock', () => {
    const runtime = new VirtualRuntime();
    let noticed = 0;
    const presence = { noticed: () => void noticed++ };
    const waiting = new LinkedQueue<LockWaiter>();
    const warning = new LongWaitWarning({ runtime, presence } as unknown as Services, waiting, async () => {});
    warning.watch();
    expect(noticed).toBe(0);
    expect(runtime.timers).toBe(0);
    waiting.push({} as LockWaiter);
    warning.watch();
    expect(noticed).toBe(1);
    warning.close();
    expect(runtime.timers).toBe(0);
  });
});

describe('the callers of one queue', () => {
  const setUp = () => {
    const runtime = new VirtualRuntime();
    const logger = new RecordingLogger();
    const failed: unknown[] = [];
    const events = {
      logger,
      unawaited: (work: Promise<unknown>) => void work.catch((error: unknown) => failed.push(error)),
    };
    const waiting = new LinkedQueue<LockWaiter>();
    const obstacle = { describe: async (write: (obstacle: string) => void) => write('held by other:1') };
    const services = { runtime, events, presence: { noticed: () => {} } } as unknown as Services;
    const warning = new LongWaitWarning(services, waiting, (write) => obstacle.describe(write));
    const arrive = (terms: object = {}) => {
      const waiter = { settled: false, terms, what: "the lock 'order'" } as unknown as LockWaiter;
      waiting.push(waiter);
      warning.watch();
      return waiter;
    };
    const leave = (waiter: LockWaiter) => {
      waiting.remove(waiter);
      waiter.settled = true;
    };
    return { runtime, logger, failed, obstacle, warning, arrive, leave };
  };
  const ONE = "A caller has waited for the lock 'order' for over 30 s; held by other:1";

  it('are warned about after 30 s to 60 s, each once', async () => {
    const { runtime, logger, arrive } = setUp();
    arrive();
    await runtime.advance(29_999);
    arrive();
    expect([runtime.timers, runtime.keepAliveTimers, logger.warnings]).toEqual([1, 0, []]);
    await runtime.advance(1);
    expect(logger.warnings).toHaveLength(1);
    await runtime.advance(30_000);
    expect(logger.warnings).toHaveLength(2);
    await runtime.advance(300_000);
    expect(logger.warnings).toHaveLength(2);
  });

  it('are warned about together if all of them have waited so long', async () => {
    const { runtime, logger, arrive } = setUp();
    const [first] = [arrive(), arrive()];
    await runtime.advance(30_000);
    expect(logger.warnings).toHaveLength(1);
    await runtime.advance(30_000);
    // The timer that started with the first caller did not know of the second one.
    expect(logger.warnings).toEqual([
      "2 callers wait for the lock 'order', the longest for over 30 s; held by other:1",
      "2 callers wait for the lock 'order', the longest for over 30 s; held by other:1",
    ]);
    expect(first.settled).toBe(false);
    await runtime.advance(60_000);
    expect(logger.warnings).toHaveLength(2);
  });

  it('are not warned about if they have left, or stand by until they lead', async () => {
    const { runtime, logger, arrive, leave } = setUp();
    const first = arrive();
    await runtime.advance(10_000);
    leave(first);
    arrive({ standsBy: true });
    await runtime.advance(120_000);
    expect(logger.warnings).toEqual([]);
  });

  it('are warned about if the first one still waits although the last one has left', async () => {
    const { runtime, logger, warning, arrive, leave } = setUp();
    arrive();
    const last = arrive();
    warning.close();
    warning.watch();
    leave(last);
    await runtime.advance(30_000);
    expect(logger.warnings).toEqual([ONE]);
  });

  it('are not watched by a timer once nobody waits', async () => {
    const { runtime, logger, arrive, leave } = setUp();
    leave(arrive());
    await runtime.advance(30_000);
    expect([runtime.timers, logger.warnings]).toEqual([0, []]);
    arrive();
    await runtime.advance(30_000);
    expect(logger.warnings).toEqual([ONE]);
  });

  it('are watched again although what they wait for could not be described', async () => {
    const { runtime, logger, failed, obstacle, arrive } = setUp();
    obstacle.describe = () => Promise.reject(new Error('no connection'));
    arrive();
    await runtime.advance(30_000);
    await runtime.settle();
    expect([failed.length, logger.warnings]).toEqual([1, []]);
    expect(runtime.timers).toBe(1);
  });
});
