import { openVirtualWorld, type ProcessSettings } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';

const identity = { application: 'shop', host: 'web-7', pid: 4242, version: '1.0.0' };
const FORCED =
  /^The lock 'order' was lost: it was force-released. It was held by shop on web-7, pid 4242, in Orders\.pay, for 7 s \(.+:1\)$/;

describe('the log says that a lock was lost', () => {
  const world = openVirtualWorld();

  /** Loses the lock of a body that runs for an hour. */
  const loseOrder = async (settings: ProcessSettings & { readonly listens?: boolean } = {}) => {
    const { listens = false, ...own } = settings;
    const process = await world.process({ identity, ...own });
    const { locks, runtime } = process;
    if (listens) locks.on('lost', () => {});
    const body = latch();
    const call = locks.withLock('order', { group: 'Orders.pay' }, () => body.promise).catch((error: Error) => error);
    await runtime.advance(7_000);
    await locks.forceRelease('order');
    await runtime.settle();
    const end = async () => {
      body.open();
      return runtime.until(call);
    };
    return { ...process, end };
  };

  it('at once, with the holder, while its body still runs', async () => {
    const { logger, end } = await loseOrder();
    expect(logger.warnings).toEqual([expect.stringMatching(FORCED)]);
    expect(await end()).toMatchObject({ name: 'LockLostError' });
    expect(logger.warnings).toHaveLength(1);
  });

  it("once, also with onLost: 'warn'", async () => {
    const { logger, end } = await loseOrder({ onLost: 'warn' });
    await end();
    expect(logger.warnings).toEqual([expect.stringMatching(FORCED)]);
  });

  it('once for all shares of the lock', async () => {
    const { locks, runtime, logger } = await world.process({ identity, onLost: 'warn' });
    const body = latch();
    const call = locks.withLock('order', () => locks.withLock('order', () => body.promise));
    await runtime.settle();
    await locks.forceRelease('order');
    body.open();
    await runtime.until(call);
    expect(logger.warnings).toHaveLength(1);
  });

  it.each(['confirmed', 'background'] as const)('once if it is noticed when it is released: %s', async (release) => {
    const { locks, runtime, logger, backend } = await world.process({ identity });
    const onLost = release === 'confirmed' ? 'warn' : undefined;
    const body = latch();
    const call = locks.withLock('order', { release, onLost }, () => body.promise);
    await runtime.settle();
    await backend.forceRelease(locks.engine.keyOf('order'));
    body.open();
    await runtime.until(call);
    await runtime.settle();
    expect(logger.warnings).toEqual([expect.stringMatching(/^The lock 'order' was lost: it no longer existed when/)]);
  });

  it('unless somebody listens to lost', async () => {
    const { logger, end } = await loseOrder({ listens: true });
    expect(logger.warnings).toEqual([]);
    expect(await end()).toMatchObject({ name: 'LockLostError' });
    expect(logger.warnings).toEqual([]);
  });

  it("when the body has ended, if somebody listens to lost, and onLost is 'warn'", async () => {
    const { logger, end } = await loseOrder({ listens: true, onLost: 'warn' });
    expect(logger.warnings).toEqual([]);
    await end();
    expect(logger.warnings).toEqual(["The lock 'order' was lost: it was force-released"]);
  });
});
