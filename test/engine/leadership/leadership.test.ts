import { BackendError } from '../../../lib/backends/lock-backend.js';
import { LockAbortedError, LockConfigurationError, LockKeyError, LockLostError } from '../../../lib/engine/errors.js';
import type { Leadership, LeadOptions } from '../../../lib/engine/leadership/leadership.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { ms, nothingIsLeft, openVirtualWorld, openWorld, STORES } from '../../support/lock-world.js';
import { until } from '../../support/until.js';

/** Longer than any pause between two elections. */
const PAUSE = 31_000;
/** More elections and refusals than there can be if there are pauses. */
const MOST = 2_000;

/** A process that leads until its signal aborts, with a log of what happened. */
class Watched {
  readonly log: string[] = [];
  readonly leases: Lease[] = [];
  readonly leadership: Leadership;
  /** Whether the body continues to run after its signal has aborted. */
  stubborn = false;
  private end: (() => void) | undefined;
  private fail: ((error: Error) => void) | undefined;

  constructor(locks: LockService, options: Partial<LeadOptions> = {}) {
    this.leadership = locks.lead('cleaner', {
      onElected: (lease) => {
        this.log.push('elected');
        this.leases.push(lease);
        return new Promise<void>((resolve, reject) => {
          this.end = resolve;
          this.fail = reject;
          lease.signal.addEventListener('abort', () => {
            this.log.push(`aborted by ${(lease.signal.reason as Error).name}`);
            if (!this.stubborn) resolve();
          });
        });
      },
      onRevoked: () => void this.log.push('revoked'),
      ...options,
    });
  }

  get lease(): Lease {
    return this.leases.at(-1) as Lease;
  }

  returns(): void {
    this.end?.();
  }

  throws(message: string): void {
    this.fail?.(new Error(message));
  }
}

describe('one of several processes is the leader', () => {
  const world = openVirtualWorld();

  const crowd = async (count: number) => {
    const processes = await Promise.all(Array.from({ length: count }, () => world.process()));
    return processes.map((process) => ({ ...process, watched: new Watched(process.locks) }));
  };
  type Member = Awaited<ReturnType<typeof crowd>>[number];
  const leaders = (members: readonly Member[]) => members.filter(({ watched }) => watched.leadership.isLeader);

  it('until it stops; then another one is, and so on', async () => {
    const members = await crowd(3);
    const { runtime } = members[0];
    await runtime.advance(1_000);
    for (let n = 0; n < 3; n++) {
      const [leader, ...others] = leaders(members);
      expect(others).toEqual([]);
      expect(leader.watched.log).toEqual(['elected']);
      const stopped = leader.watched.leadership.stop();
      expect(leader.watched.leadership.isLeader).toBe(false);
      await runtime.until(stopped, 1_000);
      expect(leader.watched.log).toEqual(['elected', 'aborted by LockAbortedError', 'revoked']);
      await runtime.advance(100);
    }
    expect(leaders(members)).toEqual([]);
    await runtime.advance(PAUSE);
    expect(members.every(({ watched }) => watched.log.length === 3)).toBe(true);
    expect(await members[0].locks.isLocked('cleaner')).toBe(false);
  });

  it('with growing fencing tokens, in a scope of its lease, without a warning about the long wait of the others', async () => {
    const { locks, logger, runtime } = await world.process();
    const standBy = await world.process();
    const seen: boolean[] = [];
    const first = locks.lead('cleaner', {
      async onElected(lease) {
        seen.push(currentLease() === lease);
        seen.push(await locks.withLock('cleaner', async (inner) => inner.owner === lease.owner));
        await new Promise((_, reject) => lease.signal.addEventListener('abort', () => reject(lease.signal.reason)));
      },
    });
    const second = new Watched(standBy.locks);
    await runtime.advance(300_000);
    expect(seen).toEqual([true, true]);
    expect([...logger.warnings, ...standBy.logger.warnings]).toEqual([]);
    await runtime.until(first.stop());
    await runtime.advance(100);
    expect(second.leadership.isLeader).toBe(true);
    expect([...logger.errors, ...logger.warnings]).toEqual([]);
  });

  it('is elected again after it lost the lock', async () => {
    const { locks, runtime, logger } = await world.process();
    const watched = new Watched(locks);
    await runtime.advance(100);
    const first = watched.lease;
    await locks.forceRelease('cleaner');
    await runtime.settle();
    expect(watched.leadership.isLeader).toBe(false);
    expect(watched.log).toEqual(['elected', 'aborted by LockLostError', 'revoked']);
    expect(logger.warnings).toEqual([expect.stringMatching(/^The lock 'cleaner' was lost: it was force-released/)]);
    await runtime.advance(300);
    expect(watched.log).toHaveLength(3); // not at once
    await runtime.advance(PAUSE);
    expect(watched.log.slice(3)).toEqual(['elected']);
    expect(watched.leadership.isLeader).toBe(true);
    expect(watched.lease.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(logger.errors).toEqual([]);
  });

  it('gives the lock up when its body throws or returns, and stands for election again after a pause', async () => {
    const { locks, runtime, logger } = await world.process();
    const watched = new Watched(locks);
    const standBy = await world.process();
    await runtime.advance(100);
    watched.throws('no disk');
    await runtime.advance(100);
    expect(watched.log).toEqual(['elected', 'revoked']);
    expect(logger.errors).toEqual(["The leader of 'cleaner' failed, and gives up the lock: no disk"]);
    const other = new Watched(standBy.locks);
    await runtime.advance(100);
    expect(other.leadership.isLeader).toBe(true);
    await runtime.advance(PAUSE);
    other.returns();
    await runtime.advance(100);
    expect([watched.leadership.isLeader, other.leadership.isLeader]).toEqual([true, false]);
    expect(other.log).toEqual(['elected', 'revoked']);
    expect(standBy.logger.errors).toEqual([]);
  });

  it.each([
    ['an error of its own after it was asked to stop', true, new Error('no disk')],
    ['because something else was aborted', false, new DOMException('the download was aborted', 'AbortError')],
  ])('reports that its body failed when it throws %s', async (_, isAsked, error) => {
    const { locks, runtime, logger } = await world.process();
    const failures: unknown[] = [];
    locks.on('error', ({ cause }) => failures.push(cause));
    const watched = new Watched(locks, {
      onElected: async ({ signal }) => {
        if (isAsked) await new Promise((resolve) => signal.addEventListener('abort', resolve));
        throw error;
      },
    });
    await runtime.advance(100);
    await runtime.until(watched.leadership.stop());
    expect(failures).toEqual([error]);
    expect(logger.errors).toEqual([]);
  });

  it.each(['onElected', 'onRevoked'] as const)(
    'reports what %s throws even if it is a value without a text, and stays in the election',
    async (which) => {
      const { locks, runtime, logger } = await world.process();
      const throws = () => Promise.reject(Object.create(null));
      const watched = new Watched(locks, which === 'onElected' ? { onElected: throws } : { onRevoked: throws });
      await runtime.advance(100);
      watched.returns();
      await runtime.advance(100);
      expect(logger.errors).toEqual([expect.stringMatching(/: a value that cannot be shown$/)]);
      const next = (await world.process()).locks.acquire('cleaner');
      await runtime.until(next);
      await (await next).release();
      await runtime.advance(PAUSE);
      const again = watched.log.filter((line) => line === (which === 'onElected' ? 'revoked' : 'elected'));
      expect(again.length).toBeGreaterThan(1);
    },
  );

  it.each([
    ['the reason of its signal', false],
    ['an AbortError', true],
  ])('reports nothing when its body ends with %s because it was asked to stop', async (_, isAbortError) => {
    const { locks, runtime, logger } = await world.process();
    const failures: unknown[] = [];
    locks.on('error', (error) => failures.push(error));
    const { leadership } = new Watched(locks, {
      onElected: async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        throw isAbortError ? new DOMException('the download was aborted', 'AbortError') : signal.reason;
      },
    });
    await runtime.advance(100);
    await runtime.until(leadership.stop());
    expect([...failures, ...logger.errors, ...logger.warnings]).toEqual([]);
  });

  it('pauses longer and longer while bodies throw, and stays in the election', async () => {
    const { locks, runtime, logger } = await world.process();
    let elections = 0;
    locks.lead('cleaner', {
      async onElected({ signal }) {
        // Without a pause this would never end, and virtual time would not advance.
        if (++elections > MOST) return new Promise((end) => signal.addEventListener('abort', end));
        throw new Error('no disk');
      },
      onRevoked() {
        throw new Error('no log');
      },
    });
    await runtime.advance(60_000);
    expect(elections).toBeGreaterThan(4);
    expect(elections).toBeLessThan(12);
    await runtime.advance(600_000);
    expect(elections).toBeGreaterThan(20);
    expect(logger.errors).toHaveLength(2 * elections);
  });

  it('stays in the election while Redis is away or refuses', async () => {
    const { locks, backend, runtime, logger } = await world.process({ outageTimeout: ms(1_000) });
    let refusals = 0;
    const away = (kind: 'unavailable' | 'denied') => async () => {
      if (++refusals > MOST) return new Promise(() => {}); // as above
      throw new BackendError(`the backend is ${kind}`, kind, 'refused');
    };
    backend.disturb(away('denied'), 'acquire');
    const watched = new Watched(locks);
    await runtime.advance(10_000);
    expect(logger.errors[0]).toMatch(/could not stand for election, and will try again: .*denied/);
    backend.disturb(away('unavailable'), 'acquire');
    await runtime.advance(600_000);
    expect(watched.log).toEqual([]);
    backend.heal();
    await runtime.advance(PAUSE);
    expect(watched.leadership.isLeader).toBe(true);
    backend.disturb(away('unavailable'), 'acquire', 'renew', 'release');
    await runtime.advance(600_000);
    expect(watched.log).toEqual(['elected', 'aborted by LockLostError', 'revoked']);
    backend.heal();
    await runtime.advance(PAUSE);
    expect(watched.leadership.isLeader).toBe(true);
  });

  it('does not stand for election again while its body ignores the signal, and a warning says so', async () => {
    const { locks, runtime, logger } = await world.process();
    const watched = new Watched(locks);
    watched.stubborn = true;
    await runtime.advance(100);
    await locks.forceRelease('cleaner');
    await runtime.advance(9_900);
    expect(logger.warnings).toHaveLength(1);
    await runtime.advance(200);
    expect(logger.warnings).toEqual([
      expect.stringMatching(/^The lock 'cleaner' was lost: /),
      expect.stringMatching(/^The leader of 'cleaner' still runs 10 s after its signal/),
    ]);
    await runtime.advance(600_000);
    expect(watched.log).toEqual(['elected', 'aborted by LockLostError']);
    expect(await locks.isLocked('cleaner')).toBe(false);
    watched.returns();
    await runtime.advance(PAUSE);
    expect(watched.log.slice(2)).toEqual(['revoked', 'elected']);
  });

  it('lets the lock lapse when its body ignores stop()', async () => {
    const { locks, runtime, logger } = await world.process({ shutdownTimeout: ms(2_000) });
    const watched = new Watched(locks);
    watched.stubborn = true;
    const other = new Watched((await world.process()).locks);
    await runtime.advance(5_000);
    const stopped = watched.leadership.stop();
    await runtime.advance(1_900);
    expect(watched.log).toEqual(['elected', 'aborted by LockAbortedError']);
    await runtime.until(stopped, 200);
    expect(watched.log.slice(2)).toEqual(['revoked']);
    expect(logger.warnings).toEqual([expect.stringMatching(/still runs 2000 ms after it was asked to stop/)]);
    await runtime.advance(10_000);
    expect(other.leadership.isLeader).toBe(false); // the body may still run
    await runtime.advance(20_000);
    expect(other.leadership.isLeader).toBe(true);
    watched.returns();
    await runtime.advance(PAUSE);
    expect(watched.log).toHaveLength(3);
    expect(other.leadership.isLeader).toBe(true);
  });

  it('settles stop() although onRevoked hangs as well', async () => {
    const { locks, runtime, logger } = await world.process({ shutdownTimeout: ms(2_000) });
    const watched = new Watched(locks, { onRevoked: () => new Promise<void>(() => {}) });
    watched.stubborn = true;
    await runtime.advance(5_000);
    await runtime.until(watched.leadership.stop(), 5_000);
    expect(logger.warnings).toEqual([
      expect.stringMatching(/still runs 2000 ms after it was asked to stop/),
      expect.stringMatching(/^onRevoked of the leader of 'cleaner' still runs after 2000 ms/),
    ]);
  });

  it('ends first of all when its service shuts down, and the next one leads at once', async () => {
    const { locks, runtime } = await world.process({ shutdownTimeout: ms(10_000) });
    const watched = new Watched(locks, { onRevoked: async () => void watched.log.push('revoked') });
    const other = new Watched((await world.process()).locks);
    await runtime.advance(100);
    let release = () => {};
    const body = locks.withLock('other', () => new Promise<void>((resolve) => (release = resolve)));
    await runtime.settle();
    const closing = locks.close();
    await runtime.advance(200);
    expect(watched.log).toEqual(['elected', 'aborted by LockAbortedError', 'revoked']);
    expect(other.leadership.isLeader).toBe(true); // while the other body still runs
    release();
    await body;
    await runtime.until(closing, 1_000);
    expect(() => new Watched(locks)).toThrow(LockAbortedError);
  });

  it('leaves the election at once when its service shuts down before it was elected, or between two elections', async () => {
    const holder = await world.process();
    const lease = await holder.locks.acquire('cleaner');
    const waiting = await world.process();
    const pausing = await world.process();
    const { runtime } = holder;
    const first = new Watched(waiting.locks);
    await runtime.advance(100);
    await runtime.until(waiting.locks.close(), 200);
    await lease.release();
    const second = new Watched(pausing.locks);
    await runtime.advance(100);
    second.returns();
    await runtime.settle();
    await runtime.until(pausing.locks.close(), 200);
    await runtime.advance(PAUSE);
    expect([first.log, second.log]).toEqual([[], ['elected', 'revoked']]);
  });

  it('may stop itself in its body, without waiting for itself', async () => {
    const { locks, runtime } = await world.process();
    const log: string[] = [];
    const leadership = locks.lead('cleaner', {
      async onElected(lease) {
        await leadership.stop();
        log.push(`stopped: ${lease.signal.aborted}, ${lease.held}`);
      },
      onRevoked: () => void log.push('revoked'),
    });
    await runtime.advance(100);
    expect(log).toEqual(['stopped: true, true', 'revoked']);
    await runtime.until(leadership.stop(), 10);
    expect(await locks.isLocked('cleaner')).toBe(false);
  });

  it('may stop itself or close its service in onRevoked, without waiting for itself', async () => {
    for (const [method, end] of [
      ['stop', (leadership: Leadership) => leadership.stop()],
      ['close', (_: Leadership, locks: LockService) => locks.close()],
    ] as const) {
      const { locks, runtime, logger } = await world.process({ shutdownTimeout: ms(5_000) });
      const log: string[] = [];
      const leadership = locks.lead(`cleaner ${method}`, {
        onElected: async () => void log.push('elected'),
        async onRevoked() {
          await end(leadership, locks);
          log.push('ended');
        },
      });
      await runtime.advance(1_000);
      expect([method, ...log]).toEqual([method, 'elected', 'ended']);
      await runtime.until(leadership.stop(), 10);
      await runtime.until(locks.close(), 100);
      expect(logger.warnings).toEqual([]);
    }
  });

  it('does not re-enter the lock of the code that calls lead()', async () => {
    const { locks, runtime } = await world.process();
    let watched: Watched | undefined;
    await locks.withLock('cleaner', async () => {
      watched = new Watched(locks);
      await runtime.settle();
      expect(watched.leadership.isLeader).toBe(false);
    });
    await runtime.advance(100);
    expect(watched?.leadership.isLeader).toBe(true);
  });

  it('is refused a bad name or option', async () => {
    const { locks } = await world.process();
    const onElected = async () => {};
    expect(() => locks.lead('', { onElected })).toThrow(LockKeyError);
    expect(() => locks.lead('job:undefined', { onElected })).toThrow(LockKeyError);
    for (const options of [undefined, {}, { onElected: 1 }, { onElected, onRevoked: 1 }, { onElected, leaseTime: 1 }])
      expect(() => locks.lead('cleaner', options as never)).toThrow(LockConfigurationError);
  });
});

describe.each(STORES)('leadership in %s', (store) => {
  const world = openWorld(store);

  it('passes from process to process, never to two at once, and leaves nothing behind', async () => {
    const processes = await world.processes(4);
    let inside = 0;
    let most = 0;
    const elected = new Set<number>();
    const leaderships = processes.map(({ locks }, n) =>
      locks.lead('cleaner', {
        async onElected({ signal }) {
          most = Math.max(most, ++inside);
          elected.add(n);
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => setTimeout(resolve, 5)));
          inside--;
        },
      }),
    );
    for (let n = 0; n < 4; n++) {
      await until(() => leaderships.some(({ isLeader }) => isLeader));
      await leaderships.find(({ isLeader }) => isLeader)?.stop();
    }
    expect([most, elected.size]).toEqual([1, 4]);
    for (const process of processes) await nothingIsLeft(process);
  });

  it('is lost with the lock', async () => {
    const [ann, bob] = await world.services(2);
    const watched = new Watched(ann);
    await until(() => watched.leadership.isLeader);
    const { signal } = watched.lease;
    await bob.forceRelease('cleaner');
    await until(() => signal.aborted);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    await until(() => watched.log.includes('revoked'));
    await watched.leadership.stop();
  });
});
