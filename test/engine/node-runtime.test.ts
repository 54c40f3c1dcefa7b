import { setTimeout as sleep } from 'node:timers/promises';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';

describe('a timer of Node.js', () => {
  it.each([2 ** 31, 2 ** 40, Number.POSITIVE_INFINITY])(
    'of %d ms, longer than Node.js allows, does not fire at once',
    async (delay) => {
      let fired = false;
      const timer = nodeRuntime.timer(delay, () => {
        fired = true;
      });
      await sleep(20);
      timer.cancel();
      expect(fired).toBe(false);
    },
  );

  it('fires soon when its delay is over already', async () => {
    await new Promise<void>((resolve) => void nodeRuntime.timer(-5, resolve, 'keep-alive'));
  });
});
