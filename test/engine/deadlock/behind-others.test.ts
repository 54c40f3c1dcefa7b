import { LockDeadlockError } from '../../../lib/engine/errors.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openPlace } from '../../support/places.js';
import { latch } from '../../support/section.js';
import { until } from '../../support/until.js';

describe.each(['memory', 'Redis'] as const)('a deadlock of processes that wait behind others, in %s', (name) => {
  const place = openPlace(name);

  const positionIn = async (locks: LockService, lock: string) =>
    (await locks.inspect(lock)).line.find(({ mine }) => mine)?.position;

  it.each(['reentrant', 'fenced'] as const)(
    'ends the wait of exactly one of them, if they wait for %s locks',
    async (type: 'reentrant' | 'fenced') => {
      const [a, b, c, d] = Array.from({ length: 4 }, () => place.service().locks);
      const [holdsX, holdsY, go] = [latch(), latch(), latch()];
      const nested = (locks: LockService, first: string, second: string, held: () => void) =>
        locks.withLock(first, { type }, async () => {
          held();
          await go.promise;
          return await locks.withLock(second, { type }, async () => 'done' as const);
        });
      const inCycle = [nested(a, 'x', 'y', holdsX.open), nested(b, 'y', 'x', holdsY.open)].map((each) =>
        each.catch((error: Error) => error),
      );
      await Promise.all([holdsX.promise, holdsY.promise]);
      const between = [c, d].flatMap((locks) =>
        ['x', 'y'].map((lock) => locks.withLock(lock, { type, waitTime: Infinity }, async () => 'done' as const)),
      );
      for (const locks of [c, d]) for (const lock of ['x', 'y']) await until(async () => await positionIn(locks, lock));
      go.open();
      await until(async () => (await positionIn(a, 'y')) === 3 && (await positionIn(b, 'x')) === 3);
      const began = performance.now();
      const results = await Promise.all(inCycle);
      expect(performance.now() - began).toBeLessThan(10_000);
      expect(results.filter((each) => each === 'done')).toHaveLength(1);
      expect(results.filter((each) => each instanceof LockDeadlockError)).toHaveLength(1);
      expect(await Promise.all(between)).toEqual(Array(4).fill('done'));
    },
  );
});
