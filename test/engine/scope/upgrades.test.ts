import { LockUpgradeError } from '../../../lib/engine/errors.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';

describe('a reader inside a writer that is refused the write lock because another reader is inside as well', () => {
  const world = openVirtualWorld();

  const stage = async () => {
    const { locks, runtime } = await world.process();
    const read = <T>(body: () => Promise<T>, options: LockOptions = {}) =>
      locks.withLock('page', { ...options, type: 'read' }, body);
    /** Runs `reader` while another reader holds the lock. */
    const besideAnother = (reader: () => Promise<void>) => {
      const [reading, over] = [latch(), latch()];
      const other = async () => {
        reading.open();
        await over.promise;
      };
      const branches = () =>
        Promise.all([read(other), reading.promise.then(() => read(reader)).finally(() => over.open())]);
      return runtime.until(locks.withLock('page', { type: 'write' }, branches));
    };
    return { locks, runtime, read, besideAnother };
  };

  it('leaves its gate to others when it wanted several locks, and waited for its own child', async () => {
    const { locks, read, besideAnother } = await stage();
    await besideAnother(async () => {
      const [inside, leaving] = [latch(), latch()];
      const child = read(async () => {
        inside.open();
        await leaving.promise;
      });
      await inside.promise;
      const upgrade = errorOf(locks.acquire(['cover', 'page'], { type: 'write' }));
      leaving.open();
      await child;
      expect(await upgrade).toBeInstanceOf(LockUpgradeError);
      expect(await read(async () => 'read', { waitTime: '1s' })).toBe('read');
      expect(await locks.isLocked('cover')).toBe(false);
    });
  });

  it('leaves the other locks to others when it wanted several', async () => {
    const { locks, runtime, besideAnother } = await stage();
    await besideAnother(async () => {
      const upgrade = errorOf(locks.acquire(['cover', 'page'], { type: 'write' }));
      expect(await upgrade).toBeInstanceOf(LockUpgradeError);
    });
    const cover = await runtime.until(locks.acquire('cover', { type: 'write', waitTime: '1s' }));
    await cover.release();
  });

  it('leaves its gate to writers when it wanted several locks', async () => {
    const { locks, runtime, read } = await stage();
    const writer = locks.withLock('page', { type: 'write' }, async () => {
      const [reading, over] = [latch(), latch()];
      const other = read(async () => {
        reading.open();
        await over.promise;
      });
      await reading.promise;
      await read(async () => {
        const upgrade = errorOf(locks.acquire(['cover', 'page'], { type: 'write' }));
        expect(await upgrade).toBeInstanceOf(LockUpgradeError);
      });
      over.open();
      await other;
      return locks.withLock('page', { type: 'write', waitTime: '1s' }, () => 'written');
    });
    expect(await runtime.until(writer)).toBe('written');
  });

  it('opens the gates again that it had closed to other readers', async () => {
    const { locks, read, besideAnother } = await stage();
    await besideAnother(async () => {
      const [refused, over] = [latch(), latch()];
      const child = read(async () => {
        expect(await errorOf(locks.acquire('page', { type: 'write' }))).toBeInstanceOf(LockUpgradeError);
        refused.open();
        await over.promise;
      });
      await refused.promise;
      expect(await read(async () => 'beside it', { waitTime: '1s' })).toBe('beside it');
      over.open();
      await child;
    });
  });
});

describe('a reader inside a writer that has ended before the writer that it started', () => {
  const world = openVirtualWorld();

  it('leaves the lock to one writer alone, and then to readers', async () => {
    const { locks, runtime } = await world.process();
    const inside: string[] = [];
    const meetings: string[] = [];
    const body = (who: string, over: Promise<void>) => async () => {
      inside.push(who);
      meetings.push(inside.join(' and '));
      await over;
      inside.splice(inside.indexOf(who), 1);
    };
    const [leaked, next] = [latch(), latch()];
    await locks.withLock('page', { type: 'write' }, async () => {
      let child: Promise<void> | undefined;
      await locks.withLock('page', { type: 'read' }, async () => {
        child = locks.withLock('page', { type: 'write' }, body('child', leaked.promise));
        await runtime.settle();
      });
      const writer = locks.withLock('page', { type: 'write' }, body('writer', next.promise));
      const reader = locks.withLock('page', { type: 'read' }, body('reader', Promise.resolve()));
      await runtime.settle();
      leaked.open();
      await runtime.settle();
      next.open();
      await runtime.until(Promise.all([child, writer, reader]));
    });
    expect(meetings).toEqual(['child', 'writer', 'reader']);
  });
});

describe('a reader of several locks inside a writer of one of them', () => {
  const world = openVirtualWorld();

  it('writes alone, without readers beside it', async () => {
    const { locks, runtime } = await world.process();
    const inside = new Set<string>();
    const meetings: string[][] = [];
    const stay = (who: string) => async () => {
      inside.add(who);
      meetings.push([...inside]);
      await runtime.advance(10);
      inside.delete(who);
    };
    await locks.withLock('page', { type: 'write' }, async () => {
      const writer = locks.withLock(['cover', 'page'], { type: 'read' }, () =>
        locks.withLock('page', { type: 'write' }, stay('writer')),
      );
      await runtime.settle();
      const reader = locks.withLock('page', { type: 'read' }, stay('reader'));
      await runtime.until(Promise.all([writer, reader]));
    });
    expect(meetings).toEqual([['writer'], ['reader']]);
  });
});
