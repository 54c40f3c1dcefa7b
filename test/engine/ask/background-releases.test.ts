import { BackendError } from '../../../lib/backends/lock-backend.js';
import { LockUnavailableError } from '../../../lib/engine/errors.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { leftovers, ms, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';
import { refused } from '../../support/watched/watched-backend.js';

const HOUR = 3_600_000;

describe('a release in the background', () => {
  const world = openVirtualWorld();

  /** A process whose acquisition got no answer, and may be executed for this time of the backend's clock. */
  const afterLostAcquisition = async (validFor: number, settings = {}) => {
    const process = await world.process(settings);
    const { locks, backend, runtime } = process;
    const validUntil = runtime.wall() + validFor;
    backend.disturb(async () => {
      throw new BackendError('no answer in time', 'unavailable', 'unknown', { validUntil });
    }, 'acquire');
    expect(await errorOf(locks.tryAcquire('order', { leaseTime: '1d' }))).toBeInstanceOf(LockUnavailableError);
    return process;
  };

  it('is repeated until the acquisition cannot be executed any more, by the clock of the backend', async () => {
    const { backend, runtime } = await afterLostAcquisition(2_000);
    backend.disturb(async () => ({ released: false, listeners: 0, at: runtime.wall() }), 'release');
    await runtime.advance(1_900);
    const during = backend.count('release');
    expect(during).toBeGreaterThan(2);
    await runtime.advance(5_000);
    const after = backend.count('release');
    expect(after).toBeGreaterThan(during);
    expect(after).toBeLessThan(during + 3);
    await runtime.advance(HOUR);
    expect(backend.count('release')).toBe(after);
  });

  it.each([
    ['the owner is not there', false],
    ['it has found the owner, each time', true],
  ])('ends after a minute or so where the clock of the backend was set back, when %s', async (_, released) => {
    const process = await afterLostAcquisition(HOUR);
    const { backend, runtime } = process;
    backend.disturb(async () => ({ released, listeners: 0, at: released ? undefined : 0 }), 'release');
    await runtime.advance(2 * 60_000);
    const sent = backend.count('release');
    expect(sent).toBeLessThan(300);
    await runtime.advance(24 * HOUR);
    expect(backend.count('release')).toBe(sent);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('continues for as long as a long commandTimeout lets the acquisition be executed', async () => {
    const { backend, runtime } = await afterLostAcquisition(5 * 60_000, { commandTimeout: ms(5 * 60_000) });
    backend.disturb(async () => ({ released: false, listeners: 0, at: runtime.wall() }), 'release');
    await runtime.advance(4 * 60_000);
    const sent = backend.count('release');
    await runtime.advance(50_000);
    expect(backend.count('release')).toBeGreaterThan(sent);
  });

  it('ends with its process', async () => {
    const { locks, backend, runtime } = await afterLostAcquisition(HOUR);
    backend.disturb(refused, 'release');
    await runtime.advance(1_000);
    expect(backend.count('release')).toBeGreaterThan(1);
    await runtime.until(locks.close());
    const sent = backend.count('release');
    await runtime.advance(HOUR);
    expect(backend.count('release')).toBeLessThanOrEqual(sent + 1);
    expect(runtime.timers).toBe(0);
  });

  it('lets those that ask about its lock continue after each attempt, not only after the last one', async () => {
    const { locks, backend, runtime } = await world.process();
    backend.disturb(async (execute) => {
      await new Promise<void>((resolve) => void runtime.timer(1_000, resolve));
      return refused(execute, undefined);
    }, 'release');
    const { services } = locks.engine;
    const owner = { key: services.keyOf('stock'), type: 'reentrant', owner: services.newOwner() } as const;
    services.backgroundReleases.release({ ...owner, leaseTime: HOUR });
    const asked = locks.isLocked('stock');
    await runtime.advance(900);
    const start = runtime.monotonic();
    expect(await runtime.until(asked, 200)).toBe(false);
    expect(runtime.monotonic() - start).toBe(100);
    const next = services.unsettledReleases.nextAnswer(owner.owner);
    expect(next).toBeDefined();
    await runtime.until(next as Promise<void>, 2_000);
    expect(backend.count('release')).toBe(2);
  });

  it('continues for most of a minute after the last time at which a command can have been sent', async () => {
    const { backend, runtime } = await afterLostAcquisition(HOUR);
    backend.disturb(async () => ({ released: false, listeners: 0, at: 0 }), 'release');
    await runtime.advance(50_000);
    const sent = backend.count('release');
    await runtime.advance(5_000);
    expect(backend.count('release')).toBeGreaterThan(sent);
  });

  it('is not sent any more once the lease has ended', async () => {
    const { locks, backend, runtime } = await world.process();
    const { services } = locks.engine;
    const times: number[] = [];
    backend.disturb((execute, request) => {
      times.push(runtime.monotonic());
      return refused(execute, request);
    }, 'release');
    for (let n = 0; n < 10; n++) {
      const owner = { key: services.keyOf('stock'), type: 'reentrant', owner: services.newOwner() } as const;
      services.backgroundReleases.release({ ...owner, leaseTime: 3_000 });
    }
    await runtime.advance(10_000);
    expect(Math.max(...times)).toBeGreaterThan(2_000);
    expect(Math.max(...times)).toBeLessThanOrEqual(3_000);
  });

  it('does not delay questions about its lock between two attempts', async () => {
    const { locks, backend, runtime } = await world.process();
    backend.disturb(refused, 'release');
    const { services } = locks.engine;
    const owner = { key: services.keyOf('stock'), type: 'reentrant', owner: services.newOwner() } as const;
    services.backgroundReleases.release({ ...owner, leaseTime: HOUR });
    await runtime.advance(5_000);
    const start = runtime.monotonic();
    expect(await runtime.until(locks.isLocked('stock'))).toBe(false);
    expect(runtime.monotonic()).toBe(start);
  });

  const cut = new BackendError('the connection broke', 'unavailable', 'unknown');
  const release = async (locks: LockService, names: readonly string[]) => {
    const leases = await Promise.all(names.map((name) => locks.acquire(name)));
    return Promise.all(leases.map((lease) => lease.release()));
  };
  const names = (count: number) => Array.from({ length: count }, (_, n) => `order:${n}`);

  it('is not reported if the first repetition is answered', async () => {
    const { locks, backend, runtime, logger } = await world.process();
    let failures = 0;
    backend.disturb((execute) => (failures++ < 50 ? Promise.reject(cut) : execute()), 'release');
    await runtime.until(release(locks, names(50)));
    await runtime.advance(60_000);
    expect(failures).toBeGreaterThan(50);
    expect(logger.warnings).toEqual([]);
  });

  it('is reported in one line for all locks that one cut concerns, and in one more every ten seconds', async () => {
    const { locks, backend, runtime, logger } = await world.process();
    backend.disturb(() => Promise.reject(cut), 'release');
    await runtime.until(release(locks, names(50)));
    await runtime.advance(2_000);
    const line = /^50 locks could not be released in time, one of them 'order:\d+' \(the connection broke\); /;
    expect(logger.warnings).toEqual([expect.stringMatching(line)]);
    for (let n = 0; n < 12; n++) {
      await runtime.until(release(locks, [`stock:${n}`]));
      await runtime.advance(500);
    }
    await runtime.advance(10_000);
    expect(logger.warnings).toHaveLength(2);
    expect(logger.warnings[1]).toMatch(/^12 locks .*'stock:0'/);
  });

  it('is reported when its process ends before it is repeated', async () => {
    const { locks, backend, runtime, logger } = await world.process();
    backend.disturb(() => Promise.reject(cut), 'release');
    await runtime.until(release(locks, ['order']));
    await runtime.until(locks.close());
    await runtime.advance(10);
    expect(logger.warnings).toEqual([expect.stringMatching(/^The lock 'order' could not be released in time \(/)]);
  });

  it('is reported at the end of its process when the next line is not due yet, and no timer is left', async () => {
    const process = await world.process();
    const { locks, backend, runtime, logger } = process;
    let isCut = true;
    backend.disturb((send) => (isCut ? Promise.reject(cut) : send()), 'release');
    await runtime.until(release(locks, ['order']));
    await runtime.advance(2_000);
    await runtime.until(release(locks, ['stock']));
    isCut = false;
    await runtime.advance(2_000);
    expect(logger.warnings).toHaveLength(1);
    await runtime.until(locks.close());
    expect(logger.warnings).toEqual([expect.anything(), expect.stringMatching(/^The lock 'stock' could not be /)]);
    expect(leftovers(process)).toEqual(NOTHING);
  });
});
