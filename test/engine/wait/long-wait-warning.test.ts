import { LinkedQueue } from '../../../lib/engine/collections/linked-queue.js';
import type { LockWaiter } from '../../../lib/engine/hold/held-lock.js';
import type { Services } from '../../../lib/engine/services.js';
import { LongWaitWarning } from '../../../lib/engine/wait/long-wait-warning.js';
import { openVirtualWorld } from '../../support/lock-world.js';
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
