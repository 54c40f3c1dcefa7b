import type { LockBackend } from '../../../lib/backends/lock-backend.js';
import type { WaitingQueue } from '../../../lib/engine/wait/outage-limit.js';
import { PingWhileWaiting } from '../../../lib/engine/wait/ping-while-waiting.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('while callers rest until there is news', () => {
  const setUp = (keys: readonly string[]) => {
    const runtime = new VirtualRuntime();
    const pings: string[][] = [];
    const health = { ping: (pinged: Iterable<string>) => void pings.push([...pinged]) };
    const queues = {
      isEmpty: keys.length === 0,
      forEach: (visit: (queue: WaitingQueue) => void) => {
        for (const key of keys) visit({ keys: [key], refuseWhere: () => {} });
      },
    };
    const pinger = new PingWhileWaiting({ health } as unknown as LockBackend, runtime, queues);
    return { runtime, pings, pinger };
  };

  it('their nodes are pinged every three seconds, once for all of them', async () => {
    const { runtime, pings, pinger } = setUp(['order', 'stock', 'order']);
    const callers = [{ resting: false }, { resting: false }];
    for (const caller of callers) pinger.rest(caller);
    pinger.rest(callers[0]);
    expect(callers.every(({ resting }) => resting)).toBe(true);
    await runtime.advance(2_999);
    expect(pings).toEqual([]);
    await runtime.advance(3_001);
    expect(pings).toEqual([
      ['order', 'stock'],
      ['order', 'stock'],
    ]);
    for (const caller of callers) pinger.unrest(caller);
    pinger.unrest(callers[0]);
    expect(runtime.timers).toBe(0);
    pinger.rest(callers[0]);
    expect(runtime.timers).toBe(1);
  });

  it('their nodes are pinged until the last of them rests no more', async () => {
    const { runtime, pings, pinger } = setUp(['order']);
    const callers = [{ resting: false }, { resting: false }];
    for (const caller of callers) pinger.rest(caller);
    pinger.unrest(callers[0]);
    expect(callers.map(({ resting }) => resting)).toEqual([false, true]);
    await runtime.advance(3_000);
    expect(pings).toHaveLength(1);
    pinger.unrest(callers[0]);
    await runtime.advance(3_000);
    expect(pings).toHaveLength(2);
    pinger.unrest(callers[1]);
    pinger.rest(callers[0]);
    await runtime.advance(2_999);
    expect(pings).toHaveLength(2);
    await runtime.advance(1);
    expect(pings).toHaveLength(3);
  });

  it('no process is kept alive by that, and nothing is sent to a backend that reports no outages', () => {
    const { runtime, pinger } = setUp(['order']);
    pinger.rest({ resting: false });
    expect([runtime.timers, runtime.keepAliveTimers]).toEqual([1, 0]);
    const other = new VirtualRuntime();
    const queues = { isEmpty: false, forEach: () => {} };
    new PingWhileWaiting({} as LockBackend, other, queues).rest({ resting: false });
    expect(other.timers).toBe(0);
  });

  it('nothing is sent when they wait for no key', async () => {
    const { runtime, pings, pinger } = setUp([]);
    pinger.rest({ resting: false });
    await runtime.advance(7_000);
    expect(pings).toEqual([]);
  });

  it('nothing is sent any more after the end of the service', async () => {
    const { runtime, pings, pinger } = setUp(['order']);
    pinger.rest({ resting: false });
    pinger.close();
    pinger.rest({ resting: false });
    expect(runtime.timers).toBe(0);
    await runtime.advance(7_000);
    expect(pings).toEqual([]);
    const other = setUp(['order']);
    other.pinger.close();
    other.pinger.rest({ resting: false });
    expect(other.runtime.timers).toBe(0);
  });
});
