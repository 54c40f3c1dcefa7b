import { LockLostError, LockUnavailableError } from '../../../lib/engine/errors.js';
import type { LockEventName } from '../../../lib/engine/events/lock-events.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { ms, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';
import { refused } from '../../support/watched/watched-backend.js';

const ALL: readonly LockEventName[] = ['acquired', 'released', 'renewed', 'lost', 'busy', 'handoff', 'error'];

/** Records the names of all events from now on. */
function listen(locks: LockService): string[] {
  const heard: string[] = [];
  for (const name of ALL) locks.on(name, () => heard.push(name));
  return heard;
}

/** A value as other promise libraries may return it. */
function failingThenable(message: string): object {
  // biome-ignore lint/suspicious/noThenProperty: the test needs a thenable
  return { then: (_: unknown, reject: (error: Error) => void) => reject(new Error(message)) };
}

describe('events', () => {
  const world = openVirtualWorld();

  it('report an acquisition and its release, with owner, token and time waited', async () => {
    const { locks, runtime } = await world.process();
    const other = await world.process();
    const details: unknown[] = [];
    locks.on('acquired', (event) => details.push(event));
    locks.on('released', (event) => details.push(event));
    const holder = await other.locks.acquire('order');
    const waiting = locks.acquire('order');
    await runtime.advance(70);
    await holder.release();
    const lease = await runtime.until(waiting);
    const { name, owner, fencingToken } = lease;
    await lease.release();
    expect(details).toEqual([
      { name, type: 'reentrant', group: '', method: '', owner, fencingToken, waited: 70 },
      { name, type: 'reentrant', group: '', method: '', owner, held: 0, confirmed: true },
    ]);
  });

  it('tell a listener that was added later that an acquisition waited for 0 ms', async () => {
    const { locks, runtime } = await world.process();
    const holder = await locks.acquire('order');
    const waiting = locks.acquire('order');
    await runtime.advance(70);
    const waited: number[] = [];
    locks.on('acquired', (event) => waited.push(event.waited));
    await holder.release();
    await (await runtime.until(waiting)).release();
    expect(waited).toEqual([0]);
  });

  it('come once for one acquisition, however often it is re-entered', async () => {
    const { locks } = await world.process();
    const heard = listen(locks);
    await locks.withLock('order', () => locks.withLock('order', () => locks.withLock('order', async () => {})));
    expect(heard).toEqual(['acquired', 'released']);
  });

  it('come for each of several locks', async () => {
    const { locks } = await world.process();
    const heard: unknown[] = [];
    locks.on('acquired', ({ name }) => heard.push(`acquired ${name}`));
    locks.on('released', ({ name }) => heard.push(`released ${name}`));
    await locks.withLock(['b', 'a'], () => locks.withLock(['a', 'c'], async () => {}));
    expect(heard).toEqual(['acquired a', 'acquired b', 'acquired c', 'released c', 'released a', 'released b']);
  });

  it('report hand-offs', async () => {
    const { locks } = await world.process();
    const heard = listen(locks);
    await Promise.all([1, 2].map(() => locks.withLock('order', { leaseTime: '5s' }, async () => {})));
    expect(heard.sort()).toEqual(['acquired', 'acquired', 'handoff', 'released', 'released']);
  });

  it('report a refusal', async () => {
    const { locks } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '5s' });
    const events: unknown[] = [];
    locks.on('busy', (event) => events.push(event));
    await locks.tryAcquire('order');
    expect(events).toEqual([
      {
        name: 'order',
        type: 'reentrant',
        group: '',
        method: '',
        remainingTime: expect.any(Number),
        holder: lease.owner,
        superseded: false,
      },
    ]);
    await lease.release();
  });

  it('do not report a refusal for callers that leave by themselves', async () => {
    const { locks, runtime } = await world.process();
    const lease = await locks.acquire('order');
    const heard = listen(locks);
    const abort = new AbortController();
    const aborted = errorOf(locks.acquire('order', { signal: abort.signal }));
    abort.abort();
    await aborted;
    const expelled = errorOf(locks.acquire('order'));
    void locks.drain();
    await runtime.advance(200);
    expect(await expelled).toMatchObject({ byShutdown: true });
    await lease.release();
    await runtime.settle();
    expect(heard).toEqual(['released']);
  });

  it('report a loss once, and then of no release', async () => {
    const { locks, runtime } = await world.process({ watchdogTimeout: ms(300) });
    const other = await world.process();
    const lease = await locks.acquire('order');
    const heard = listen(locks);
    await other.locks.forceRelease('order');
    await runtime.advance(150);
    expect(await errorOf(lease.release())).toBeInstanceOf(LockLostError);
    expect(heard).toEqual(['lost']);
    const again = await locks.acquire('order');
    await other.locks.forceRelease('order');
    expect(await errorOf(again.release())).toBeInstanceOf(LockLostError);
    expect(heard).toEqual(['lost', 'acquired', 'lost']);
  });

  it('report errors that make no call fail', async () => {
    const { locks, backend, runtime, logger } = await world.process();
    const errors: Error[] = [];
    locks.on('error', (error) => errors.push(error));
    backend.disturb(refused, 'acquire');
    const waiting = locks.acquire('order');
    await runtime.advance(10);
    backend.heal();
    await (await runtime.until(waiting)).release();
    expect(errors).toEqual([expect.any(LockUnavailableError)]);
    expect(logger.errors).toEqual([]);
  });

  it('reach listeners outside of any scope', async () => {
    const { locks } = await world.process();
    const seen: unknown[] = [];
    for (const name of ALL) locks.on(name, () => seen.push(currentLease()));
    await locks.withLock('order', () => locks.withLock('stock', async () => {}));
    expect(seen.length).toBe(4);
    expect(seen.every((lease) => lease === undefined)).toBe(true);
  });

  it('survive listeners that throw or reject: that is logged', async () => {
    const { locks, logger } = await world.process();
    const heard: string[] = [];
    locks.on('acquired', () => {
      throw new Error('thrown');
    });
    locks.on('acquired', async () => {
      throw new Error('rejected');
    });
    locks.on('acquired', () => heard.push('acquired'));
    expect(await locks.withLock('order', async () => 'sold')).toBe('sold');
    expect(heard).toEqual(['acquired']);
    expect(logger.errors).toEqual([
      expect.stringContaining("A listener of 'acquired' failed: Error: thrown"),
      expect.stringContaining("A listener of 'acquired' failed: Error: rejected"),
    ]);
  });

  it('survive listeners that return a failing thenable, or throw what cannot be printed', async () => {
    const { locks, logger } = await world.process();
    locks.on('acquired', () => failingThenable('rejected') as unknown as undefined);
    locks.on('acquired', () => {
      throw Object.create(null);
    });
    expect(await locks.withLock('order', async () => 'sold')).toBe('sold');
    await world.runtime.settle();
    expect(new Set(logger.errors)).toEqual(
      new Set([
        "A listener of 'acquired' failed: Error: rejected",
        "A listener of 'acquired' failed: a value that cannot be shown",
      ]),
    );
  });

  it('do not loop when a listener for errors throws', async () => {
    const { locks, backend, logger } = await world.process();
    locks.on('error', () => {
      throw new Error('thrown');
    });
    backend.disturb(refused, 'acquire');
    await errorOf(locks.acquire('order', { waitTime: 0 }));
    const waiting = errorOf(locks.acquire('order', { waitTime: 1 }));
    await world.runtime.advance(10);
    await waiting;
    expect(logger.errors.length).toBeLessThanOrEqual(2);
  });

  it('no longer reach a listener that was removed', async () => {
    const { locks } = await world.process();
    const heard: string[] = [];
    const off = locks.on('acquired', () => heard.push('one'));
    locks.on('acquired', () => heard.push('other'));
    off();
    off();
    await locks.withLock('order', async () => {});
    expect(heard).toEqual(['other']);
  });

  it('have fixed names: any other name is refused', async () => {
    const { locks } = await world.process();
    expect(() => locks.on('aquired' as 'acquired', () => {})).toThrow("There is no event 'aquired'");
  });
});

describe('the log', () => {
  const world = openVirtualWorld();

  it.each([
    [
      'throws',
      () => {
        throw new Error('disk full');
      },
    ],
    ['rejects', () => Promise.reject(new Error('disk full'))],
    ['gives a thenable that rejects', () => failingThenable('disk full')],
  ])('that %s does no harm: a renewal that failed is tried again', async (_, fail) => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const { locks, backend, runtime, logger } = await world.process();
    logger.warn = logger.error = fail as () => void;
    const lease = await locks.acquire('order');
    await runtime.advance(9_000);
    backend.disturb(refused, 'renew', 'release');
    await runtime.advance(5_000);
    expect(backend.count('renew')).toBeGreaterThan(1);
    await (await locks.acquire('stock')).release();
    backend.heal();
    await runtime.advance(60_000);
    expect(lease.held).toBe(true);
    await lease.release();
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });

  it('has a few lines when many locks are lost at once, and says how many it left out', async () => {
    const { locks, backend, runtime, logger } = await world.process({ onLost: 'warn' });
    const leases = await Promise.all(Array.from({ length: 1_000 }, (_, i) => locks.acquire(`order:${i}`)));
    backend.disturb(async () => ({ released: false, listeners: 0 }), 'release');
    await Promise.all(leases.map((lease) => lease.release()));
    expect(logger.warnings).toHaveLength(20);
    await runtime.advance(1_000);
    expect(logger.warnings.slice(20)).toEqual(['980 more lines were left out within 1000 ms']);
    const late = await locks.acquire('order');
    await late.release();
    expect(logger.warnings).toHaveLength(22);
  });
});
