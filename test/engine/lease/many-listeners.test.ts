import { openVirtualWorld } from '../../support/lock-world.js';

describe('the signal of a lease', () => {
  const world = openVirtualWorld();

  it('takes more than ten listeners without a warning of a leak', async () => {
    const { locks } = await world.process();
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => void warnings.push(warning);
    process.on('warning', onWarning);
    await locks.withLock('order', async ({ signal }) => {
      for (let n = 0; n < 20; n++) signal.addEventListener('abort', () => {});
      await new Promise((resolve) => setImmediate(resolve));
    });
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });
});
