import type { Services } from '../../../lib/engine/services.js';
import { SemaphoreWarnings } from '../../../lib/engine/synchronizers/semaphore-warnings.js';
import type { Synchronizer } from '../../../lib/engine/synchronizers/synchronizer.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { asleep, watch } from '../../support/asleep.js';
import { backendOf, openWorld, STORES } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { woken } from '../../support/time-limits.js';
import { until } from '../../support/until.js';
import { answerAfter } from '../../support/watched/watched-backend.js';

const KINDS = ['getSemaphore', 'getPermitExpirableSemaphore'] as const;

describe.each(STORES)('a semaphore that nobody has set up, in %s', (store) => {
  const world = openWorld(store);

  it.each(KINDS)('is reported by one warning for each name, not at each call: %s', async (kind) => {
    const { locks, logger } = await world.process();
    for (let n = 0; n < 3; n++) expect(await locks[kind]('mail').tryAcquire()).toBeFalsy();
    expect(await locks[kind]('sms').tryAcquire()).toBeFalsy();
    expect(logger.warnings).toEqual(
      ['mail', 'sms'].map((name) =>
        expect.stringMatching(
          new RegExp(
            `^There is no semaphore '${name}' in .+, so no permit can be acquired. Set its permits once, with ${kind}\\('${name}', { permits: n }\\)`,
          ),
        ),
      ),
    );
  });

  it('is reported by a warning when callers wait for it; they are served when somebody sets it up', async () => {
    const [waiting, other] = await world.processes(2);
    const acquired = waiting.locks.getSemaphore('mail').acquire();
    await asleep(waiting.locks);
    expect(waiting.logger.warnings).toHaveLength(1);
    await other.locks.getSemaphore('mail').trySetPermits(1);
    await acquired;
  });

  it.each(KINDS)('is not confused with one whose permits are all taken: %s', async (kind) => {
    const { locks, logger } = await world.process();
    await locks[kind]('mail').trySetPermits(1);
    await locks[kind]('mail').acquire();
    expect(await locks[kind]('mail').tryAcquire()).toBeFalsy();
    expect(logger.warnings).toEqual([]);
  });
});

/** Without the engine, which leaves lines out of its log when there are many. */
it('the warning about a semaphore is remembered among a thousand others at most, so that names take no more memory', () => {
  const warnings: string[] = [];
  const logger = { warn: (warning: string) => warnings.push(warning) };
  const warning = new SemaphoreWarnings({
    backend: { description: 'Redis' },
    events: { logger },
  } as unknown as Services);
  const warn = (n: number) =>
    warning.isMissing({
      name: `mail:${n}`,
      key: `lock:mail:${n}`,
      what: 'the semaphore',
      method: 'getSemaphore',
    } as Synchronizer);
  for (let n = 0; n < 1_000; n++) warn(n);
  warn(0);
  expect(warnings).toHaveLength(1_000);
  warn(1_000);
  warn(0);
  expect(warnings).toHaveLength(1_002);
});

describe.each(STORES)('a semaphore with the option permits, in %s', (store) => {
  const world = openWorld(store);
  /** Without the one that compares the number of permits, for which nobody waits. */
  const requests = (locks: LockService) =>
    backendOf(locks).synchronizerRequests.commands.filter((command) => command !== 'inspect');

  it.each(KINDS)('is set up by its first use, without an additional request: %s', async (kind) => {
    const { locks, logger } = await world.process();
    const semaphore = locks[kind]('mail', { permits: 2 });
    for (let n = 0; n < 2; n++) expect(await semaphore.tryAcquire()).toBeTruthy();
    expect(await semaphore.tryAcquire()).toBeFalsy();
    expect(requests(locks)).toHaveLength(3);
    expect(logger.warnings).toEqual([]);
    expect(await locks.inspect('mail')).toMatchObject({ synchronizer: { count: 0, total: 2, taken: 2 } });
  });

  it.each(KINDS)('is set up once by all processes: %s', async (kind) => {
    const services = await world.services(4);
    const tries = services.flatMap((locks, n) =>
      Array.from({ length: 4 }, () => locks[kind]('mail', { permits: 5 + n }).tryAcquire()),
    );
    const acquired = (await Promise.all(tries)).filter(Boolean).length;
    const { total } = (await services[0].inspect('mail')).synchronizer ?? {};
    expect([5, 6, 7, 8]).toContain(total);
    expect(acquired).toBe(total);
  });

  it.each(KINDS)('is reported by one warning if it has another number of permits: %s', async (kind) => {
    const [ann, bob] = await world.processes(2);
    await ann.locks[kind]('mail', { permits: 3 }).acquire();
    await ann.locks[kind]('mail', { permits: 3 }).acquire();
    for (let n = 0; n < 2; n++) await bob.locks[kind]('mail', { permits: 5 }).tryAcquire();
    await until(() => bob.logger.warnings.length > 0);
    expect(bob.logger.warnings).toEqual([
      `${kind}: the option permits is 5, but the semaphore 'mail' was created with 3 permits, and keeps them. Change the option, or call addPermits(2) once`,
    ]);
    expect(ann.logger.warnings).toEqual([]);
  });

  it('keeps the permits that it has', async () => {
    const [ann, bob] = await world.services(2);
    await ann.getSemaphore('mail').trySetPermits(1);
    const semaphore = bob.getSemaphore('mail', { permits: 9 });
    expect([await semaphore.tryAcquire(), await semaphore.tryAcquire()]).toEqual([true, false]);
    expect(await bob.getSemaphore('mail', { permits: 9 }).availablePermits()).toBe(0);
  });

  it.each<[string, (locks: LockService) => Promise<unknown>, number]>([
    ['release', (locks) => locks.getSemaphore('mail', { permits: 3 }).release(), 4],
    ['releaseIfExists', (locks) => locks.getSemaphore('mail', { permits: 3 }).releaseIfExists(), 4],
    ['addPermits', (locks) => locks.getSemaphore('mail', { permits: 3 }).addPermits(2), 5],
    ['availablePermits', (locks) => locks.getSemaphore('mail', { permits: 3 }).availablePermits(), 3],
    ['drainPermits', (locks) => locks.getSemaphore('mail', { permits: 3 }).drainPermits(), 0],
    ['addPermits', (locks) => locks.getPermitExpirableSemaphore('mail', { permits: 3 }).addPermits(2), 5],
    ['getPermits', (locks) => locks.getPermitExpirableSemaphore('mail', { permits: 3 }).getPermits(), 3],
  ])('is set up by %s() too, with at most one request more, and that once', async (_name, use, left) => {
    const { locks } = await world.process();
    await use(locks);
    expect(requests(locks).length).toBeLessThanOrEqual(2);
    expect(await locks.getSemaphore('mail').availablePermits()).toBe(left);
  });

  it('is not asked for again by a handle that has used it', async () => {
    const { locks } = await world.process();
    const semaphore = locks.getSemaphore('mail', { permits: 3 });
    await semaphore.acquire();
    await semaphore.release();
    await semaphore.availablePermits();
    expect(requests(locks)).toEqual(['takePermits', 'addPermits', 'availablePermits']);
  });

  it('serves callers of another handle that wait for it already', async () => {
    const { locks } = await world.process();
    const waiting = Array.from({ length: 70 }, () => locks.getSemaphore('mail').acquire());
    await asleep(locks);
    const acquired = locks.getSemaphore('mail', { permits: 71 }).acquire();
    await woken(Promise.all([...waiting, acquired]));
    expect(await locks.getSemaphore('mail').availablePermits()).toBe(0);
  });

  it('serves callers that have come while the first request was under way', async () => {
    const { locks } = await world.process();
    const waiting = Array.from({ length: 70 }, () => locks.getSemaphore('mail').acquire());
    const acquired = locks.getSemaphore('mail', { permits: 71 }).acquire();
    await woken(Promise.all([...waiting, acquired]));
  });

  it('serves a caller that can set it up and has come while others were asking again', async () => {
    const { locks, backend } = await world.process();
    const leaving = new AbortController();
    const first = errorOf(locks.getSemaphore('mail').acquire(1, { signal: leaving.signal }));
    const second = locks.getSemaphore('mail').acquire();
    await asleep(locks);
    const watched = backend.synchronizerRequests;
    const answer = latch();
    const asked = watched.count('takePermits');
    watched.disturb(answerAfter(answer.promise), 'takePermits');
    leaving.abort();
    await first;
    await until(() => watched.count('takePermits') > asked);
    const third = locks.getSemaphore('mail', { permits: 2 }).acquire();
    watched.heal();
    answer.open();
    await woken(Promise.all([second, third]));
  });

  it('wakes callers of other processes when it is set up', async () => {
    const [ann, bob] = await world.services(2);
    const acquired = ann.getSemaphore('mail').acquire();
    const waiting = watch(acquired);
    await asleep(ann);
    expect(waiting.done).toBe(false);
    await bob.getSemaphore('mail', { permits: 2 }).acquire();
    await woken(acquired);
  });

  it.each([
    [{ permits: -1 }, /^getSemaphore\(\): permits is -1: it must be a whole number from 0/],
    [{ permits: '3' }, /^getSemaphore\(\): permits is '3'/],
    [{ permit: 3 }, /^getSemaphore\(\): there is no option 'permit'; did you mean 'permits'\?$/],
    [3, /^getSemaphore\(\): the options must be an object, but they are/],
  ])('refuses the options %j', async (options, why) => {
    const { locks } = await world.process();
    expect(() => locks.getSemaphore('mail', options as never)).toThrow(why);
  });
});
