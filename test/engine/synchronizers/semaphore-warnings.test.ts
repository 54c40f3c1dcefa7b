import type { SynchronizerBackend } from '../../../lib/backends/synchronizer-backend.js';
import type { Services } from '../../../lib/engine/services.js';
import { SemaphoreWarnings } from '../../../lib/engine/synchronizers/semaphore-warnings.js';
import type { Synchronizer } from '../../../lib/engine/synchronizers/synchronizer.js';

describe('the warnings about a semaphore', () => {
  let lines: string[];
  let warnings: SemaphoreWarnings;
  /** The total that the backend knows; undefined if there is no semaphore. */
  let total: number | undefined;
  let inspected: string[];
  beforeEach(() => {
    lines = [];
    total = 5;
    inspected = [];
    const events = { logger: { warn: (line: string) => lines.push(line) } };
    warnings = new SemaphoreWarnings({ backend: { description: 'Redis' }, events } as unknown as Services);
  });

  const semaphore = (name: string, initial?: number): Synchronizer => ({
    name,
    key: `lock:${name}`,
    what: `the semaphore '${name}'`,
    method: 'getSemaphore',
    initial,
  });
  const backend = {
    inspect: async (key: string) => {
      inspected.push(key);
      return total === undefined ? undefined : { total };
    },
  } as unknown as SynchronizerBackend;
  const settle = () => new Promise((resolve) => setImmediate(resolve));

  it('say once that it is missing, and how it is set up', () => {
    for (const name of ['mail', 'sms', 'mail']) warnings.isMissing(semaphore(name));
    expect(lines).toEqual(
      ['mail', 'sms'].map(
        (name) =>
          `There is no semaphore '${name}' in Redis, so no permit can be acquired. Set its permits once, with getSemaphore('${name}', { permits: n }) or trySetPermits(n)`,
      ),
    );
  });

  it('say once that it has more or fewer permits than its option says', async () => {
    warnings.exists(semaphore('mail', 3), backend);
    warnings.exists(semaphore('mail', 3), backend);
    warnings.exists(semaphore('sms', 9), backend);
    await settle();
    expect(inspected).toEqual(['lock:mail', 'lock:sms']);
    expect(lines).toEqual([
      "getSemaphore: the option permits is 3, but the semaphore 'mail' was created with 5 permits, and keeps them. Change the option, or call addPermits(-2) once",
      "getSemaphore: the option permits is 9, but the semaphore 'sms' was created with 5 permits, and keeps them. Change the option, or call addPermits(4) once",
    ]);
  });

  it('do not take a missing one for one that was compared', async () => {
    warnings.isMissing(semaphore('mail', 3));
    warnings.exists(semaphore('mail', 3), backend);
    await settle();
    expect(lines).toHaveLength(2);
  });

  it.each<[string, () => void]>([
    ['it has as many', () => warnings.exists(semaphore('mail', 5), backend)],
    ['its user expects no number', () => warnings.exists(semaphore('mail'), backend)],
    [
      'it is gone',
      () => {
        total = undefined;
        warnings.exists(semaphore('mail', 3), backend);
      },
    ],
    ['the backend cannot say', () => warnings.exists(semaphore('mail', 3), {} as SynchronizerBackend)],
    [
      'the backend does not answer',
      () =>
        warnings.exists(semaphore('mail', 3), {
          inspect: () => Promise.reject(new Error('no answer')),
        } as unknown as SynchronizerBackend),
    ],
  ])('say nothing of its number of permits if %s', async (_, exists) => {
    exists();
    await settle();
    expect(lines).toEqual([]);
  });

  it('do not ask for the number of permits that nobody expects', async () => {
    warnings.exists(semaphore('mail'), backend);
    warnings.exists(semaphore('mail', 3), backend);
    await settle();
    expect([inspected, lines.length]).toEqual([['lock:mail'], 1]);
  });
});
