import {
  LockBusyError,
  LockConfigurationError,
  LockKeyError,
  LockLostError,
  LockUnavailableError,
} from '../../lib/engine/errors.js';
import { currentLease } from '../../lib/engine/scope/lock-scope.js';
import type { RedLock } from '../../lib/handles/red-lock.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { type LockProcess, nothingIsLeft, openWorld, STORES } from '../support/lock-world.js';
import { errorOf, latch, Section } from '../support/section.js';
import { woken } from '../support/time-limits.js';
import { until } from '../support/until.js';
import { answerAfter, refused } from '../support/watched/watched-backend.js';
import { locked } from './locked.js';

describe.each(STORES)('the red lock over three services, on %s', (store) => {
  const worlds = [openWorld(store), openWorld(store), openWorld(store)];

  /** One process, with a service on each store. */
  const open = () => Promise.all(worlds.map((world) => world.process()));
  const redLock = (process: readonly LockProcess[], name = 'order'): RedLock =>
    process[0].locks.getRedLock(...process.map(({ locks }) => locks.getLock(name)));
  const lockedOn = async (services: readonly LockProcess[], name = 'order') => {
    const states = await Promise.all(services.map(({ locks }) => locks.isLocked(name)));
    return states.filter((is) => is).length;
  };
  /** Expects a majority. On a busy machine, the third answer may come so late that its lock is given back. */
  const heldOnAll = async (lock: RedLock) => {
    let lease = await lock.lock();
    await until(async () => {
      if (lease.tokens.size === 3) return true;
      await lease.release();
      lease = await lock.lock();
      return false;
    });
    return lease;
  };
  const free = (process: readonly LockProcess[]) => until(async () => (await lockedOn(process)) === 0);
  /** Holds the lock on one store alone. */
  const occupy = (service: LockService) => service.acquire('order');

  it('is held on all of them, and freed', async () => {
    const [one, two] = [await open(), await open()];
    const lock = redLock(one);
    const lease = await heldOnAll(lock);
    await lease.run(() => expect(lock.getHoldCount()).toBe(1));
    expect(await lockedOn(two)).toBe(3);
    expect(await redLock(two).tryLock()).toBeNull();
    expect(await lockedOn(two)).toBe(3);
    await lease.release();
    expect(await lockedOn(two)).toBe(0);
    expect(lease.held).toBe(false);
  });

  it('all or none: a majority is enough, so one busy member does not matter', async () => {
    const [one, two] = [await open(), await open()];
    const busy = await occupy(two[1].locks);
    await locked(redLock(one), (lease) => {
      expect(lease.held).toBe(true);
      expect(lease.tokens.size).toBe(2);
    });
    await busy.release();
    await free(one);
  });

  it('too many busy members: the others are released', async () => {
    const [one, two] = [await open(), await open()];
    const busy = [await occupy(two[0].locks), await occupy(two[1].locks)];
    expect(await redLock(one).tryLock()).toBeNull();
    await until(async () => !(await one[2].locks.isLocked('order')));
    expect(await redLock(one).tryLock(900)).toBeNull();
    await until(async () => !(await one[2].locks.isLocked('order')));
    for (const lease of busy) await lease.release();
    await locked(redLock(one), () => {});
  });

  it('N−quorum members down', async () => {
    const [one, two] = [await open(), await open()];
    for (const process of [one, two]) process[0].backend.disturb(refused, 'acquire', 'release', 'renew');
    const section = new Section();
    await Promise.all(
      Array.from({ length: 10 }, (_, n) => locked(redLock(n % 2 ? one : two), () => section.pass(`${n}`, 1))),
    );
    expect(section.most).toBe(1);
    expect(section.entries).toHaveLength(10);
  });

  it('does not wait for a member that gives no answer', async () => {
    const [one, two] = [await open(), await open()];
    const silence = latch();
    one[0].backend.disturb((execute, request) => silence.promise.then(() => refused(execute, request)), 'acquire');
    await locked(redLock(one), async () => {
      expect(await redLock(two).tryLock()).toBeNull();
    });
    silence.open();
    await free(two);
  });

  it('gives back what a slow member grants after all', async () => {
    const one = await open();
    const slow = latch();
    one[0].backend.disturb((execute) => slow.promise.then(execute), 'acquire');
    await locked(redLock(one), () => {
      slow.open();
      return until(() => one[0].backend.count('release') === 1);
    });
    await free(one);
  });

  it('more members down than that are an error, or waited out', async () => {
    const one = await open();
    for (const { backend } of one.slice(1)) backend.disturb(refused, 'acquire');
    expect(await errorOf(redLock(one).tryLock())).toBeInstanceOf(LockUnavailableError);
    expect(await errorOf(redLock(one).tryLock(100))).toBeInstanceOf(LockUnavailableError);
    // A member that grants after the others have refused is released without making the caller wait.
    await until(async () => !(await one[0].locks.isLocked('order')));
    const waiting = locked(redLock(one), () => {});
    await until(() => one[1].backend.count('acquire') > 4);
    one[1].backend.heal();
    await waiting;
  });

  it('is busy for a caller whose wait ends within a round trip', async () => {
    const one = await open();
    await locked(redLock(one), () => {}); // now all are connected
    await free(one);
    const answer = latch();
    for (const { backend } of one) backend.disturb(answerAfter(answer.promise), 'acquire');
    expect(await redLock(one).tryLock(5)).toBeNull();
    answer.open();
    await free(one);
  });

  it('wait and lease time-outs', async () => {
    const [one, two] = [await open(), await open()];
    await redLock(one).lock(4_000);
    const since = performance.now();
    expect(await redLock(two).tryLock(600)).toBeNull();
    expect(performance.now() - since).toBeGreaterThanOrEqual(595);
    await locked(redLock(two), () => {});
    await free(one);
  });

  it('is acquired by a waiter when a majority of its members becomes free', async () => {
    const [one, two] = [await open(), await open()];
    const busy = await Promise.all(two.map(({ locks }) => occupy(locks)));
    const waiting = locked(redLock(one), () => {});
    await until(() => one.some(({ backend }) => backend.isAsleep));
    for (const lease of busy.slice(1)) await lease.release();
    await woken(waiting);
    await busy[0].release();
  });

  it('serves contenders of several processes one at a time, each once', async () => {
    const processes = [await open(), await open(), await open(), await open()];
    const section = new Section();
    await Promise.all(
      Array.from({ length: 24 }, (_, n) => locked(redLock(processes[n % 4]), () => section.pass(`${n}`, 1))),
    );
    expect(section.most).toBe(1);
    expect(new Set(section.entries).size).toBe(24);
    await free(processes[0]);
    for (const process of processes.flat()) await nothingIsLeft(process);
  });

  it('serves contenders for an even number of members, who may take half of them each', async () => {
    const processes = [await open(), await open()];
    const section = new Section();
    const half = (process: readonly LockProcess[]) =>
      process[0].locks.getRedLock(...process.slice(0, 2).map(({ locks }) => locks.getLock('even')));
    await Promise.all(
      Array.from({ length: 12 }, (_, n) => locked(half(processes[n % 2]), () => section.pass(`${n}`, 1))),
    );
    expect(section.most).toBe(1);
  });

  it('outlives the loss of one member, and reports the loss of two', async () => {
    const [one, two] = [await open(), await open()];
    const lock = redLock(one);
    const first = await heldOnAll(lock);
    await one[0].locks.forceRelease('order');
    expect(first.held).toBe(true);
    expect(first.signal.aborted).toBe(false);
    expect(first.remainingTime()).toBeGreaterThan(20_000);
    await first.run((given) => {
      expect(currentLease()).toBe(given);
      expect(lock.isHeldByCurrentScope()).toBe(true);
    });
    expect(await redLock(two).tryLock()).toBeNull();
    await first.release();
    const lease = await lock.lock();
    for (const { locks } of one.slice(1)) await locks.forceRelease('order');
    expect(lease.held).toBe(false);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(await errorOf(lease.run(() => {}))).toBeInstanceOf(LockLostError);
    await expect(lease.release()).rejects.toThrow(LockLostError);
    await free(two);
  });

  it('is re-entrant in its scope', async () => {
    const one = await open();
    const lock = () => redLock(one);
    await locked(lock(), (outer) =>
      outer.run(async () => {
        await locked(lock(), (inner) =>
          inner.run(async () => {
            await locked(one[1].locks.getLock('order'), () => {});
            expect(lock().getHoldCount()).toBe(2);
          }),
        );
        expect(lock().getHoldCount()).toBe(1);
      }),
    );
    expect(await lock().isLocked()).toBe(false);
  });

  it('can be a member of a multi-lock, and have one', async () => {
    const [one, two] = [await open(), await open()];
    const [{ locks }] = one;
    const both = locks.getMultiLock(redLock(one), locks.getLock('other'));
    await locked(both, (lease) =>
      lease.run(async () => {
        expect(both.getHoldCount()).toBe(1);
        expect(currentLease('other')?.name).toBe('other');
        expect(await redLock(two).tryLock()).toBeNull();
      }),
    );
    await locked(redLock(two), () => {});
    const pairs = one.map((process) =>
      process.locks.getMultiLock(process.locks.getLock('a'), process.locks.getLock('b')),
    );
    await locked(locks.getRedLock(...pairs), async () => {
      expect(await lockedOn(two, 'a')).toBeGreaterThanOrEqual(2);
      expect(await lockedOn(two, 'b')).toBeGreaterThanOrEqual(2);
    });
    await until(async () => (await lockedOn(two, 'a')) + (await lockedOn(two, 'b')) === 0);
  });

  it('can be a member of a multi-lock when its own members are locks of one service', async () => {
    const [{ locks }, { locks: other }] = await open();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => locks.getLock(name));
    await locked(locks.getMultiLock(locks.getRedLock(a, b, c), locks.getLock('d')), async () => {
      const held = await Promise.all(['a', 'b', 'c'].map((name) => locks.isLocked(name)));
      expect(held.filter((is) => is).length).toBeGreaterThanOrEqual(2);
    });
    await locked(locks.getMultiLock(locks.getRedLock(a, b, c), a), () => {}); // it can do without `a`
    expect(() => locks.getMultiLock(locks.getRedLock(a, b), a)).toThrow(LockConfigurationError);
    expect(() => locks.getMultiLock(locks.getRedLock(a, other.getLock('b')), locks.getFairLock('a'))).toThrow(
      LockConfigurationError,
    );
  });

  it('says of a busy lock how many members could not be acquired', async () => {
    const [one, two] = [await open(), await open()];
    await occupy(two[0].locks);
    await occupy(two[1].locks);
    const error = await errorOf(redLock(one).acquireLease({ waitTime: 0 }));
    expect(error).toBeInstanceOf(LockBusyError);
    expect(error.message).toMatch(/^2 of the 3 locks order, order, order could not be acquired, and 2 are needed/);
  });

  it('is refused without members, or with one that is no lock', async () => {
    const [{ locks }] = await open();
    expect(() => locks.getRedLock()).toThrow(LockKeyError);
    expect(() => locks.getRedLock(locks.getLock('a'), 'b' as never)).toThrow(LockConfigurationError);
    expect(await errorOf(locks.getRedLock(locks.getLock('')).lock())).toBeInstanceOf(LockKeyError);
  });
});
