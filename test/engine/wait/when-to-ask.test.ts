import { type Busy, HEAD_START, type Wake } from '../../../lib/backends/lock-backend.js';
import { WhenToAsk } from '../../../lib/engine/wait/when-to-ask.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

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
