import { runTraced } from '../../../lib/engine/trace/run-traced.js';
import { errorOf } from '../../support/section.js';

type Run = <T>(work: () => T) => T;

describe('work that a subscriber may run itself', () => {
  let warnings: string[] = [];
  let runs = 0;
  beforeEach(() => {
    warnings = [];
    runs = 0;
  });

  const traced = <T>(run: unknown, work: () => T): T =>
    runTraced(
      'hold',
      { run: run as Run | undefined },
      () => {
        runs++;
        return work();
      },
      { logger: { warn: (message: string) => void warnings.push(message), error: () => {} } },
    );
  const failure = new Error('work');
  const fails = () => {
    throw failure;
  };

  it('is run if nobody does', () => {
    expect(traced(undefined, () => 'done')).toBe('done');
    expect(() => traced(undefined, fails)).toThrow(failure);
    expect([runs, warnings]).toEqual([2, []]);
  });

  it('is run by the subscriber, in whose context it runs', () => {
    const steps: string[] = [];
    const run: Run = (work) => {
      steps.push('before');
      const result = work();
      steps.push('after');
      return result;
    };
    expect(traced(run, () => steps.push('work'))).toBe(2);
    expect(steps).toEqual(['before', 'work', 'after']);
    expect([runs, warnings]).toEqual([1, []]);
  });

  it('has its own result, whatever the subscriber returns', () => {
    const run = (work: () => unknown) => {
      work();
      return 'something else';
    };
    expect(traced(run, () => 'done')).toBe('done');
    expect(warnings).toEqual([]);
  });

  it('is run once, although the subscriber runs it twice', () => {
    const run: Run = (work) => {
      work();
      return work();
    };
    expect([traced(run, () => 'done'), runs]).toEqual(['done', 1]);
  });

  it('fails with its own error, of which nothing is logged if the subscriber passes it on', () => {
    expect(() => traced((work: () => unknown) => work(), fails)).toThrow(failure);
    expect([runs, warnings]).toEqual([1, []]);
  });

  it('fails with its own error, although the subscriber catches it', () => {
    const run = (work: () => unknown) => {
      try {
        work();
      } catch {
        return 'caught';
      }
    };
    expect(() => traced(run, fails)).toThrow(failure);
    expect([runs, warnings]).toEqual([1, []]);
  });

  it('rejects once, for its caller', async () => {
    const rejected = traced(
      (work: () => unknown) => work(),
      () => Promise.reject(failure),
    );
    expect(await errorOf(rejected)).toBe(failure);
    await new Promise((resolve) => setImmediate(resolve));
    expect(warnings).toEqual([]);
  });

  it('does not reject because the subscriber does', async () => {
    const run = async (work: () => unknown) => {
      await work();
      throw new Error('tracer');
    };
    expect(await traced(run, async () => 'done')).toBe('done');
    await new Promise((resolve) => setImmediate(resolve));
    expect([runs, warnings]).toEqual([1, []]);
  });

  const failed = "A subscriber of 'hold' set a run() that failed: ";
  it.each<[string, unknown, string]>([
    [
      'does not run it',
      () => 'nothing',
      "A subscriber of 'hold' set a run() that did not call its callback synchronously; the work ran anyway",
    ],
    [
      'throws before',
      () => {
        throw new Error('tracer');
      },
      failed,
    ],
    [
      'throws after',
      (work: () => unknown) => {
        work();
        throw new Error('tracer');
      },
      failed,
    ],
    ['is no function', 'run', failed],
  ])('is run anyway, with a warning, if the subscriber %s', (_, run, warning) => {
    expect(traced(run, () => 'done')).toBe('done');
    expect(runs).toBe(1);
    expect(warnings).toEqual([expect.stringContaining(warning)]);
    expect(warnings[0]).toMatch(/; the work ran anyway$/);
  });

  it('fails with its own error if the subscriber replaces it, with a warning', () => {
    const run = (work: () => unknown) => {
      try {
        work();
      } catch {
        throw new Error('tracer');
      }
    };
    expect(() => traced(run, fails)).toThrow(failure);
    expect([runs, warnings]).toEqual([1, [expect.stringContaining(failed)]]);
  });
});
