import { BackendError } from '../../../lib/backends/backend-error.js';
import { UnreleasedLocks } from '../../../lib/engine/ask/unreleased-locks.js';
import { RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

const timeout = new BackendError('no answer within 1000 ms', 'unavailable', 'unknown');
const denied = new BackendError('NOPERM', 'denied', 'refused');

describe('locks that could not be released', () => {
  const setUp = () => {
    const runtime = new VirtualRuntime();
    const logger = new RecordingLogger();
    return { runtime, logger, unreleased: new UnreleasedLocks(runtime, logger) };
  };
  const one = (name: string, reason = timeout.message) =>
    expect.stringContaining(`The lock '${name}' could not be released in time (${reason})`);
  const several = (count: number, name: string) =>
    expect.stringContaining(`${count} locks could not be released in time, one of them '${name}'`);

  it('are in the log after a second, in one line', async () => {
    const { runtime, logger, unreleased } = setUp();
    unreleased.add('order', timeout);
    await runtime.advance(900);
    unreleased.add('stock', timeout);
    expect(logger.warnings).toEqual([]);
    await runtime.advance(200);
    expect(logger.warnings).toEqual([several(2, 'order')]);
    expect(runtime.timers).toBe(0);
  });

  it('have a line for each cause', async () => {
    const { runtime, logger, unreleased } = setUp();
    unreleased.add('order', timeout);
    unreleased.add('stock', denied);
    await runtime.advance(1_100);
    expect(logger.warnings).toEqual([one('order'), one('stock', 'NOPERM')]);
  });

  it('have a line every ten seconds at most', async () => {
    const { runtime, logger, unreleased } = setUp();
    unreleased.add('order', timeout);
    await runtime.advance(1_100);
    for (const name of ['a', 'b', 'c']) unreleased.add(name, timeout);
    await runtime.advance(9_800);
    expect(logger.warnings.length).toBe(1);
    await runtime.advance(200);
    expect(logger.warnings.slice(1)).toEqual([several(3, 'a')]);
    await runtime.advance(20_000);
    unreleased.add('late', timeout);
    await runtime.advance(1_100);
    expect(logger.warnings.slice(2)).toEqual([one('late')]);
  });

  it('are in the log at the latest when the service is closed, which leaves no timer', async () => {
    const { runtime, logger, unreleased } = setUp();
    unreleased.add('order', timeout);
    unreleased.close();
    expect([logger.warnings, runtime.timers]).toEqual([[one('order')], 0]);
    await runtime.advance(20_000);
    expect([logger.warnings.length, runtime.timers]).toEqual([1, 0]);
  });

  it('have no other line when the service is closed, if all of them are in the log', async () => {
    const { runtime, logger, unreleased } = setUp();
    unreleased.add('order', timeout);
    await runtime.advance(1_100);
    unreleased.close();
    expect(logger.warnings).toEqual([one('order')]);
  });

  it('are in the log at once if they fail while the service is closed, in one line', async () => {
    const { runtime, logger, unreleased } = setUp();
    unreleased.close();
    expect(logger.warnings).toEqual([]);
    unreleased.add('order', timeout);
    unreleased.add('stock', timeout);
    await runtime.settle();
    expect(logger.warnings).toEqual([several(2, 'order')]);
    expect(runtime.timers).toBe(0);
  });
});
