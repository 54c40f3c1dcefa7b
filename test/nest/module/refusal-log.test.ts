import { LockAbortedError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { RefusalLog } from '../../../lib/nest/refusal-log.js';
import { RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('the log of refused requests', () => {
  const setUp = () => {
    const [runtime, logger] = [new VirtualRuntime(), new RecordingLogger()];
    const log = new RefusalLog(logger, runtime);
    const refuse = (count: number, reason: string) => {
      for (let n = 0; n < count; n++) {
        const cause = new Error(reason);
        log.write('error', new LockUnavailableError(`The lock 'order:${n}': ${reason}`, `order:${n}`, { cause }));
      }
    };
    return { runtime, log, refuse, lines: () => logger.errors.splice(0), warnings: logger.warnings };
  };
  const A = 'redis a:6379 gave no answer within 2000 ms';
  const B = 'redis b:6379 gave no answer within 2000 ms';

  it('has a line for each reason and ten seconds, with the number of the others', async () => {
    const { runtime, refuse, lines } = setUp();
    refuse(297, A);
    refuse(1, B);
    expect(lines()).toEqual([`The lock 'order:0': ${A}`, `The lock 'order:0': ${B}`]);
    await runtime.advance(9_000);
    refuse(1, 'redis a:6379 gave no answer within 1999 ms');
    expect(lines()).toEqual([]);
    await runtime.advance(1_000);
    const last = "The lock 'order:0': redis a:6379 gave no answer within 1999 ms";
    expect(lines()).toEqual([`${last} (297 more in the last 10 s)`]);
    refuse(2, A);
    refuse(1, B);
    expect(lines()).toEqual([`The lock 'order:0': ${B}`]);
    await runtime.advance(10_000);
    expect(lines()).toEqual([`The lock 'order:1': ${A} (2 more in the last 10 s)`]);
  });

  it('has no timer when nothing was refused for ten seconds', async () => {
    const { runtime, refuse, lines } = setUp();
    refuse(3, A);
    await runtime.advance(20_000);
    expect(lines()).toHaveLength(2);
    expect(runtime.timers).toBe(0);
    refuse(1, A);
    expect(lines()).toEqual([`The lock 'order:0': ${A}`]);
  });

  it('takes refusals of different locks for one reason, if they name no other', async () => {
    const { log, warnings } = setUp();
    for (const name of ['order:1', 'order:2'])
      log.write('warn', new LockAbortedError(`The lock '${name}': the lock service is shutting down`, name));
    log.write('warn', new LockAbortedError('no name', ''));
    expect(warnings).toEqual(["The lock 'order:1': the lock service is shutting down", 'no name']);
  });

  it('remembers no more than a hundred reasons', async () => {
    const { runtime, refuse, lines } = setUp();
    for (let n = 0; n < 500; n++) refuse(1, `reason ${n}`);
    expect(lines()).toHaveLength(101);
    await runtime.advance(10_000);
    expect(lines()).toEqual(["The lock 'order:0': reason 499 (399 more in the last 10 s)"]);
  });
});
