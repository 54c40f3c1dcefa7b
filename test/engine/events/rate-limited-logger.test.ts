import { describeThrown, harmless, RateLimitedLogger } from '../../../lib/engine/events/lock-logger.js';
import { RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('the log', () => {
  const setUp = () => {
    const runtime = new VirtualRuntime();
    const log = new RecordingLogger();
    return { runtime, log, logger: new RateLimitedLogger(log, runtime) };
  };

  it('has twenty lines a second at most, even if they are spread over that second', async () => {
    const { runtime, log, logger } = setUp();
    for (let i = 0; i < 45; i++) {
      logger.warn(`line ${i}`);
      await runtime.advance(20);
    }
    expect(log.warnings).toHaveLength(20);
  });

  it('says how many lines it left out', async () => {
    const { runtime, log, logger } = setUp();
    for (let i = 0; i < 30; i++) (i % 2 === 0 ? logger.error : logger.warn).call(logger, `line ${i}`);
    await runtime.advance(1_000);
    expect(log.errors).toHaveLength(10);
    expect(log.warnings).toHaveLength(11);
    expect(log.warnings.at(-1)).toMatch(/^10 more/);
    await runtime.advance(5_000);
    expect(log.warnings).toHaveLength(11);
    expect(runtime.timers).toBe(0);
  });

  it('has twenty lines again in each further second', async () => {
    const { runtime, log, logger } = setUp();
    for (let second = 1; second <= 3; second++) {
      for (let i = 0; i < 20; i++) logger.error(`line ${i}`);
      expect(log.errors).toHaveLength(second * 20);
      await runtime.advance(1_000);
    }
    expect(log.warnings).toEqual([]);
  });

  it('says that it left out a single line', async () => {
    const { runtime, log, logger } = setUp();
    for (let i = 0; i < 21; i++) logger.error(`line ${i}`);
    await runtime.advance(1_000);
    expect(log.warnings).toEqual(['1 more lines were left out within 1000 ms']);
  });

  it('counts the lines that it leaves out anew each time', async () => {
    const { runtime, log, logger } = setUp();
    for (const count of [23, 22]) {
      for (let i = 0; i < count; i++) logger.error(`line ${i}`);
      await runtime.advance(1_000);
    }
    expect(log.warnings).toEqual([
      '3 more lines were left out within 1000 ms',
      '2 more lines were left out within 1000 ms',
    ]);
  });

  it('has lines of all three kinds, which count alike, if the logger takes them', () => {
    const { runtime, log, logger } = setUp();
    logger.log('without a method for it');
    const lines: string[] = [];
    const full = new RateLimitedLogger(
      {
        log: (line) => lines.push(`log ${line}`),
        warn: (line) => lines.push(`warn ${line}`),
        error: (line) => lines.push(`error ${line}`),
      },
      runtime,
    );
    for (const write of [full.log, full.warn, full.error]) for (let i = 0; i < 8; i++) write.call(full, `${i}`);
    expect(lines.map((line) => line.split(' ')[0])).toEqual([
      ...Array<string>(8).fill('log'),
      ...Array<string>(8).fill('warn'),
      ...Array<string>(4).fill('error'),
    ]);
    expect([...log.warnings, ...log.errors]).toEqual([]);
  });

  it('has no effect on its callers when the logger throws or rejects', async () => {
    const { runtime } = setUp();
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const failures = [
      () => {
        throw new Error('disk full');
      },
      (() => Promise.reject(new Error('disk full'))) as never,
    ];
    for (const fail of failures) {
      const logger = new RateLimitedLogger({ log: fail, warn: fail, error: fail }, runtime);
      for (const write of [logger.log, logger.warn, logger.error]) write.call(logger, 'line');
    }
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});

describe('code of a user that may fail', () => {
  it('passes its error on, whether it throws it, rejects with it, or returns a thenable that does', async () => {
    const errors: unknown[] = [];
    const note = (error: unknown) => void errors.push(error);
    // biome-ignore lint/suspicious/noThenProperty: the test needs a thenable
    const thenable = { then: (_: unknown, reject: (error: string) => void) => reject('by a thenable') };
    harmless(() => {
      throw 'thrown';
    }, note);
    harmless(() => Promise.reject('rejected'), note);
    harmless(() => thenable, note);
    // biome-ignore lint/suspicious/noThenProperty: it looks like a thenable
    const lookalike = { then: 'not a function' };
    for (const result of [undefined, null, 0, lookalike, Promise.resolve(1)]) harmless(() => result, note);
    await new Promise((resolve) => setImmediate(resolve));
    expect(errors.sort()).toEqual(['by a thenable', 'rejected', 'thrown']);
  });

  it('may throw anything, which is described', () => {
    expect([new Error('no disk'), 'text', undefined, Object.create(null)].map(describeThrown)).toEqual([
      'Error: no disk',
      'text',
      'undefined',
      'a value that cannot be shown',
    ]);
  });
});
