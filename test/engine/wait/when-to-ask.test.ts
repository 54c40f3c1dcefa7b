import type { Busy, Wake } from '../../../lib/backends/lock-backend.js';
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
});
