import type { Caller } from '../../../lib/engine/wait/caller.js';
import { UnlimitedWaitWarning } from '../../../lib/engine/wait/unlimited-wait-warning.js';
import { RecordingLogger } from '../../support/lock-world.js';

describe('the warning of a wait without a limit', () => {
  const WITHOUT_LIMIT = { triesOnce: false, mayLeave: false, terms: {}, what: "the lock 'order'" };
  const caller = (more: object = {}) => ({ ...WITHOUT_LIMIT, ...more }) as unknown as Caller<never>;
  const setUp = (isDue = true) => {
    const logger = new RecordingLogger();
    return { logger, warning: new UnlimitedWaitWarning(isDue, logger) };
  };

  it('is logged once, and names what the caller waits for', () => {
    const { logger, warning } = setUp();
    expect(warning.isDue).toBe(true);
    warning.check(caller());
    expect(logger.warnings).toEqual([
      expect.stringMatching(/^A caller waits for the lock 'order' without a limit, because neither the call nor /),
    ]);
    expect(warning.isDue).toBe(false);
    warning.check(caller());
    expect(logger.warnings).toHaveLength(1);
  });

  it('is not logged where it is not due', () => {
    const { logger, warning } = setUp(false);
    warning.check(caller());
    expect(logger.warnings).toEqual([]);
  });

  it.each([
    ['tries once', { triesOnce: true }],
    ['may leave', { mayLeave: true }],
    ['stands by until it leads', { terms: { standsBy: true } }],
    ['was given a waitTime, even Infinity', { terms: { choseWaitTime: true } }],
  ])('remains due after a caller that %s', (_, more) => {
    const { logger, warning } = setUp();
    warning.check(caller(more));
    expect(logger.warnings).toEqual([]);
    expect(warning.isDue).toBe(true);
  });
});
