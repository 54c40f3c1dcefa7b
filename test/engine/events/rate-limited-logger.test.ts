import { RateLimitedLogger } from '../../../lib/engine/events/lock-logger.js';
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
});
