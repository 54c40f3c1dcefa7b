import { LockAbortedError, LockConfigurationError, LockLostError } from '../../../lib/engine/errors.js';
import type { Lease, MultiLease } from '../../../lib/engine/terms/lease.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';

describe('holdAtMost', () => {
  const world = openVirtualWorld();
  const options = { holdAtMost: '1m' } as const;

  /** A body that ends when the test says so. */
  function body() {
    let end!: (value: string) => void;
    let entered!: (lease: MultiLease) => void;
    const lease = new Promise<MultiLease>((resolve) => {
      entered = resolve;
    });
    const run = (lease: MultiLease) =>
      new Promise<string>((resolve) => {
        end = resolve;
        entered(lease);
      });
    return { run, lease, end: (value: string) => end(value) };
  }

  it('aborts the signal, renews no longer, and leaves the lock to others when its lease has ended', async () => {
    const [{ locks, runtime, logger }, other] = [await world.process(), await world.process()];
    const { run, lease: entering, end } = body();
    const call = locks.withLock('order', options, run);
    const lease = await entering;
    await runtime.advance(59_000);
    expect(lease.signal.aborted).toBe(false);
    await runtime.advance(1_500);
    expect(lease.signal.reason).toBeInstanceOf(LockAbortedError);
    expect(lease.signal.reason.message).toContain('longer than holdAtMost (60000 ms)');
    expect(logger.warnings).toEqual([expect.stringContaining("The lock 'order' was held for longer than holdAtMost")]);
    expect(lease.held).toBe(true);

    // Neither another process nor this one gets it while its lease lasts, because the body may still run.
    const waits = [other.locks.acquire('order'), locks.acquire('order')];
    expect(await other.locks.tryAcquire('order')).toBeNull();
    await runtime.advance(31_000);
    expect(lease.held).toBe(false);
    const winner = await Promise.race(waits);
    end('late');
    expect(await errorOf(call)).toBeInstanceOf(LockLostError);
    await winner.release();
    await runtime.until(Promise.all(waits).then((leases) => Promise.all(leases.map((each) => each.release()))));
  });

  it('frees the lock and returns the result when the body ends before the lease does', async () => {
    const [{ locks, runtime }, other] = [await world.process(), await world.process()];
    const { run, lease: entering, end } = body();
    const call = locks.withLock('order', options, run);
    const lease = await entering;
    const waiting = other.locks.acquire('order');
    await runtime.advance(61_000);
    expect(lease.signal.aborted).toBe(true);
    end('stopped');
    expect(await call).toBe('stopped');
    await (await waiting).release();
  });

  it('does nothing to a body that ends in time', async () => {
    const { locks, runtime, logger } = await world.process();
    let signal: AbortSignal | undefined;
    await locks.withLock('order', options, (lease) => {
      signal = lease.signal;
    });
    await runtime.advance(120_000);
    expect(signal?.aborted).toBe(false);
    expect(logger.warnings).toEqual([]);
  });

  it('reaches the bodies that have entered the lock again', async () => {
    const { locks, runtime } = await world.process();
    const { run, lease: entering, end } = body();
    const call = locks.withLock('order', options, () => locks.withLock('order', run));
    const inner = await entering;
    await runtime.advance(61_000);
    expect(inner.signal.aborted).toBe(true);
    end('stopped');
    expect(await call).toBe('stopped');
  });

  it('of a re-entry aborts only its own signal', async () => {
    const { locks, runtime } = await world.process();
    const { run, lease: entering, end } = body();
    let outer: Lease | undefined;
    const call = locks.withLock('order', (lease) => {
      outer = lease;
      return locks.withLock('order', options, run);
    });
    const inner = await entering;
    await runtime.advance(200_000);
    expect(inner.signal.reason).toBeInstanceOf(LockAbortedError);
    expect(outer?.signal.aborted).toBe(false);
    expect(outer?.held).toBe(true);
    end('stopped');
    expect(await call).toBe('stopped');
  });

  it('of several names leaves those to lapse that it has acquired itself, and not those of the code around it', async () => {
    const [{ locks, runtime, logger }, other] = [await world.process(), await world.process()];
    const { run, lease: entering, end } = body();
    let outer: Lease | undefined;
    const call = locks.withLock('order', (lease) => {
      outer = lease;
      return locks.withLock(['order', 'stock'], { ...options, onLost: 'warn' }, run);
    });
    const inner = await entering;
    const waiting = other.locks.acquire('stock');
    await runtime.advance(60_500);
    expect(inner.signal.reason).toBeInstanceOf(LockAbortedError);
    expect(inner.signal.reason.message).toContain("and 'stock' is no longer renewed");
    expect(logger.warnings).toEqual([expect.stringContaining("The lock 'stock' was held for longer than holdAtMost")]);
    await (await runtime.until(waiting, 31_000)).release();
    expect(outer?.signal.aborted).toBe(false);
    expect(outer?.held).toBe(true);
    end('stopped');
    expect(await runtime.until(call)).toBe('stopped');
  });

  it('leaves a name of its own to lapse also after the code around it has left the other one to lapse', async () => {
    const [{ locks, runtime }, other] = [await world.process(), await world.process()];
    const { run, lease: entering, end } = body();
    const call = locks.withLock('order', { holdAtMost: '50s', onLost: 'warn' }, () =>
      locks.withLock(['order', 'stock'], { ...options, onLost: 'warn' }, run),
    );
    await entering;
    const waiting = other.locks.acquire('stock');
    await (await runtime.until(waiting, 95_000)).release();
    end('stopped');
    expect(await runtime.until(call)).toBe('stopped');
  });

  it('leaves the other names to lapse also after one of them was lost', async () => {
    const [{ locks, runtime }, other] = [await world.process(), await world.process()];
    const { run, lease: entering, end } = body();
    const call = errorOf(locks.withLock(['order', 'stock'], options, run));
    const lease = await entering;
    await other.locks.forceRelease('order');
    await runtime.advance(31_000);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    const waiting = other.locks.acquire('stock');
    await (await runtime.until(waiting, 62_000)).release();
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    end('stopped');
    expect(await runtime.until(call)).toBeInstanceOf(LockLostError);
  });

  it('does nothing to a body that has released its lock itself, and runs on', async () => {
    const { locks, runtime, logger } = await world.process();
    const { run, lease: entering, end } = body();
    const call = locks.withLock('order', options, run);
    const lease = await entering;
    await (lease as Lease).release();
    await runtime.advance(120_000);
    expect([lease.signal.aborted, logger.warnings]).toEqual([false, []]);
    end('done');
    expect(await call).toBe('done');
  });

  it('needs no timer where it is not set, and none after the body has ended or thrown', async () => {
    const { locks, runtime } = await world.process();
    const { run, lease: entering, end } = body();
    const call = locks.withLock('order', run);
    await entering;
    const without = 1; // the heartbeat of the watchdog
    expect(runtime.timers).toBe(without);
    const limited = body();
    const other = locks.withLock('stock', options, limited.run);
    await limited.lease;
    expect(runtime.timers).toBe(without + 1);
    limited.end('done');
    await other;
    expect(runtime.timers).toBe(without);
    await errorOf(locks.withLock('stock', options, () => Promise.reject(new Error('sold out'))));
    expect(runtime.timers).toBe(without);
    end('done');
    await call;
  });

  it('warns of no lock that was lost, or left to lapse before', async () => {
    const [{ locks, runtime, logger }, other] = [await world.process(), await world.process()];
    const [lost, lapsing] = [body(), body()];
    const limit = { holdAtMost: '10s', onLost: 'warn' } as const;
    const calls = [locks.withLock(['order', 'stock'], limit, lost.run), locks.withLock('parcel', limit, lapsing.run)];
    const [lease, stopped] = [await lost.lease, await lapsing.lease];
    await runtime.advance(2_000);
    await other.locks.forceRelease('order');
    await runtime.settle();
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    locks.engine.services.heldLocks(locks.engine.keyOf('parcel'))[0].abandon(new Error('shutdown'));
    await runtime.advance(8_000);
    expect(stopped.signal.reason.message).toContain('has run for longer than holdAtMost (10000 ms). Stop');
    expect(logger.warnings).toEqual([
      expect.stringContaining("The lock 'order' was lost: it was force-released"),
      expect.stringContaining("The lock 'stock' was held for longer than holdAtMost"),
    ]);
    for (const { end } of [lost, lapsing]) end('stopped');
    expect(await runtime.until(Promise.all(calls))).toEqual(['stopped', 'stopped']);
  });

  it('says in the signal what becomes of the lock', async () => {
    const { locks, runtime, logger } = await world.process();
    const [outer, inner] = [body(), body()];
    const call = locks.withLock('order', options, async (lease) => {
      await locks.withLock('order', { holdAtMost: '30s' }, inner.run);
      return outer.run(lease);
    });
    const entered = await inner.lease;
    await runtime.advance(30_000);
    const { message } = entered.signal.reason;
    expect(message).toContain("The body inside the lock 'order' has run for longer than holdAtMost (30000 ms). Stop");
    expect(logger.warnings).toEqual([]);
    inner.end('stopped');
    const lease = await outer.lease;
    await runtime.advance(30_000);
    expect(lease.signal.reason.message).toContain('(60000 ms), and it is no longer renewed, so it ends with its lease');
    expect(lease.signal.reason.lockName).toBe('order');
    expect(logger.warnings).toHaveLength(1);
    outer.end('stopped');
    await call;
  });

  it('is refused where no body runs, and where it is no duration', async () => {
    const { locks } = await world.process();
    for (const call of [
      () => locks.acquire('order', options as object),
      () => locks.tryAcquire('order', options as object),
      () => locks.withLock('order', { holdAtMost: 0 }, () => 'in'),
      () => locks.withLock('order', { holdAtMost: 'long' as '1m' }, () => 'in'),
      () => locks.singleFlight('order', options as object, () => 'in'),
    ])
      expect(await errorOf((async () => call())())).toBeInstanceOf(LockConfigurationError);
  });
});
