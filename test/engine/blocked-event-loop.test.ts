import { LockLostError } from '../../lib/engine/errors.js';
import { ms, openVirtualWorld, openWorld } from '../support/lock-world.js';
import { blockEventLoop } from '../support/runtime/block-event-loop.js';
import { errorOf, latch } from '../support/section.js';
import { answerAfter, refused } from '../support/watched/watched-backend.js';

const BLOCKED = 'its lease was not renewed in time, because the event loop of this process was blocked for 39.0 s';

describe('when the event loop was blocked for longer than the lease', () => {
  const world = openVirtualWorld();

  it('release() says so, although the backend says that the lock no longer exists', async () => {
    const { locks, runtime } = await world.process();
    const lost: Error[] = [];
    locks.on('lost', ({ error }) => lost.push(error));
    const error = await errorOf(
      locks.withLock('order', async () => {
        runtime.block(40_000);
      }),
    );
    expect(error).toBeInstanceOf(LockLostError);
    expect((error as Error).message).toContain(`The lock 'order' was lost: ${BLOCKED}`);
    expect(lost).toEqual([error]);
    expect(await locks.isLocked('order')).toBe(false);
  });

  it('so does a release in the background', async () => {
    const { locks, runtime, logger } = await world.process();
    await locks.withLock('order', { release: 'background', onLost: 'warn' }, async () => {
      runtime.block(40_000);
    });
    expect(logger.warnings.join()).toContain(`The lock 'order' was lost: ${BLOCKED}`);
  });

  it('its signal is aborted as soon as it is read, before any timer has fired', async () => {
    const { locks, runtime } = await world.process();
    const lease = await locks.acquire('order');
    const nested = await lease.run(() => locks.acquire('order'));
    expect(lease.signal.aborted).toBe(false);
    runtime.block(40_000);
    expect(nested.signal.aborted).toBe(true);
    expect(lease.signal.reason.message).toContain(BLOCKED);
    expect(await errorOf(lease.release())).toBe(lease.signal.reason);
    await errorOf(nested.release());
  });

  it('the signal of a fixed lease, and of a multi-lock, is aborted when it is read as well', async () => {
    const { locks, runtime } = await world.process();
    const fixed = await locks.acquire('basket', { leaseTime: '20s' });
    const several = await locks.getMultiLock(locks.getLock('a'), locks.getLock('b')).lock();
    runtime.block(40_000);
    expect(fixed.signal.aborted).toBe(true);
    expect(fixed.signal.reason.message).toContain(
      'its lease ended (during it, the event loop of this process was blocked for 39.0 s)',
    );
    expect(several.signal.aborted).toBe(true);
    await Promise.all([fixed, several].map((lease) => errorOf(lease.release())));
  });

  it('the watchdog says so, also when a renewal was under way or had failed', async () => {
    const { locks, backend, runtime } = await world.process();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'renew');
    const unanswered = await locks.acquire('unanswered');
    await runtime.advance(10_100);
    runtime.block(30_000);
    await runtime.advance(0);
    expect(unanswered.signal.reason.message).toContain('was blocked for 29');
    backend.heal();
    backend.disturb(refused, 'renew');
    const failed = await locks.acquire('failed');
    await runtime.advance(10_100);
    runtime.block(30_000);
    await runtime.advance(0);
    expect(failed.signal.reason.message).toMatch(
      /could not be renewed before its lease ended \(during it, .* was blocked for 29.*\): the connection is closed/,
    );
    answer.open();
    await Promise.all([unanswered, failed].map((lease) => errorOf(lease.release())));
  });

  it('extend() says so', async () => {
    const { locks, runtime } = await world.process();
    const lease = await locks.acquire('order');
    runtime.block(40_000);
    expect(((await errorOf(lease.extend('30s'))) as Error).message).toContain(BLOCKED);
    await errorOf(lease.release());
  });

  it('a permit says so', async () => {
    const { locks, runtime } = await world.process();
    const lost: Error[] = [];
    locks.on('lost', ({ error }) => lost.push(error));
    const semaphore = locks.getPermitExpirableSemaphore('slots', { permits: 1 });
    await semaphore.acquire();
    runtime.block(40_000);
    await runtime.advance(0);
    expect(lost.map(({ message }) => message).join()).toContain(BLOCKED);
  });
});

describe('when the event loop was blocked for more than a third of the lease', () => {
  const world = openVirtualWorld();

  it('the service warns, before anything is lost, and once a minute', async () => {
    const { locks, runtime, logger } = await world.process();
    const lease = await locks.acquire('order');
    runtime.block(12_000);
    await runtime.advance(0);
    expect(logger.warnings).toEqual([
      expect.stringMatching(/^The event loop of this process was blocked for 11\.0 s, .* docs\/blocked-event-loop\.md/),
    ]);
    await runtime.advance(10_000);
    runtime.block(14_000);
    await runtime.advance(1_000);
    expect(logger.warnings.length).toBe(1);
    await runtime.advance(60_000);
    runtime.block(14_000);
    await runtime.advance(0);
    expect(logger.warnings.length).toBe(2);
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('the service warns, even if the lock was released in the same turn', async () => {
    const { locks, runtime, logger } = await world.process();
    await locks.withLock('order', async () => {
      runtime.block(20_000);
    });
    expect(logger.warnings.join()).toContain('The event loop of this process was blocked for 19.0 s');
  });

  it('a loss for another reason mentions it', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order');
    backend.disturb(answerAfter(new Promise(() => {})), 'renew');
    runtime.block(28_000);
    await runtime.advance(2_000);
    expect(lease.signal.reason.message).toContain(
      'the backend did not confirm a renewal before the lease ended (during it, the event loop of this process was blocked for 27.0 s)',
    );
    await errorOf(lease.release());
  });

  it('is silent about less, and about a loop that nothing depended on', async () => {
    const { locks, runtime, logger } = await world.process();
    const lease = await locks.acquire('order');
    runtime.block(9_000);
    await runtime.advance(0);
    await lease.release();
    await runtime.advance(5_000);
    runtime.block(60_000);
    await runtime.advance(5_000);
    expect(logger.warnings).toEqual([]);
  });
});

describe('a lock on Redis', () => {
  const world = openWorld('Redis');

  it('whose body blocks the event loop for longer than its lease names that as the reason', async () => {
    const { locks } = await world.process({ watchdogTimeout: ms(600) });
    const lease = await locks.acquire('report');
    blockEventLoop(1_500);
    const error = (await errorOf(lease.release())) as Error;
    expect(error).toBeInstanceOf(LockLostError);
    expect(error.message).toMatch(/the event loop of this process was blocked for [1-9]\d*\.\d s/);
  });
});
