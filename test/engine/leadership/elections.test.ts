import { BackendError } from '../../../lib/backends/lock-backend.js';
import type { LeadOptions } from '../../../lib/engine/leadership/leadership.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { ms, openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';

const SHUTDOWN = 2_000;

describe('a process that stands for election', () => {
  const world = openVirtualWorld();

  const open = async () => {
    const process = await world.process({ shutdownTimeout: ms(SHUTDOWN) });
    const { locks, logger } = process;
    const lines: string[] = [];
    Object.assign(logger, { log: (line: string) => lines.push(line) });
    const errors: Error[] = [];
    locks.on('error', (error) => errors.push(error));
    const lead = (options: Partial<LeadOptions>, method = '', name = 'cleaner') =>
      locks.engine.lead(name, { onElected: async () => {}, ...options }, 'lead()', method);
    return { ...process, lines, errors, lead };
  };
  const untilAborted = ({ signal }: Lease) =>
    new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  const never = () => new Promise<void>(() => {});

  it('writes one line when it begins to lead, and one when it no longer leads', async () => {
    const { lead, runtime, lines, logger } = await open();
    const leadership = lead({ onElected: untilAborted });
    expect(leadership.isLeader).toBe(false);
    await runtime.settle();
    expect([leadership.isLeader, lines]).toEqual([
      true,
      [expect.stringMatching(/^Now leads 'cleaner' with the fencing token \d+$/)],
    ]);
    await runtime.until(leadership.stop());
    expect([leadership.isLeader, lines.slice(1)]).toEqual([false, ["No longer leads 'cleaner'"]]);
    expect([...logger.warnings, ...logger.errors]).toEqual([]);
  });

  it('does not lead if it was stopped before it learned that it had got the lock, and gives the lock back', async () => {
    const { lead, runtime, backend, locks, lines } = await open();
    const answer = latch();
    backend.disturb(async (execute) => {
      const reply = await execute();
      await answer.promise;
      return reply;
    }, 'acquire');
    const calls: string[] = [];
    const leadership = lead({
      onElected: async () => void calls.push('elected'),
      onRevoked: () => void calls.push('revoked'),
    });
    await runtime.settle();
    const stopped = leadership.stop();
    answer.open();
    await runtime.until(stopped);
    expect([calls, lines, await locks.isLocked('cleaner')]).toEqual([[], [], false]);
  });

  it('reports that it could not stand for election, and tries again', async () => {
    const { lead, runtime, backend, errors } = await open();
    backend.disturb(async () => {
      throw new BackendError('NOPERM', 'denied', 'refused');
    }, 'acquire');
    const leadership = lead({ onElected: untilAborted });
    await runtime.settle();
    expect(errors.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^The leader of 'cleaner' could not stand for election, and will try again: /),
    ]);
    backend.heal();
    await runtime.advance(1_001);
    expect(leadership.isLeader).toBe(true);
    await runtime.until(leadership.stop());
    expect(errors).toHaveLength(1);
  });

  it('pauses for a second at most after a leadership of more than 30 s, and longer after shorter ones', async () => {
    const { lead, runtime } = await open();
    const times: number[] = [];
    let lasts = 0;
    runtime.random = () => 1;
    const leadership = lead({
      onElected: async () => {
        times.push(runtime.monotonic());
        await new Promise<void>((resolve) => void runtime.timer(lasts, resolve));
      },
    });
    await runtime.advance(8_000);
    expect(times).toEqual([0, 1_000, 3_000, 7_000]);
    lasts = 30_000; // no longer than the longest pause
    await runtime.advance(8_000 + 30_000 + 16_000);
    expect(times.slice(4)).toEqual([15_000, 61_000]);
    lasts = 30_001;
    await runtime.advance(30_000 + 30_000 + 30_001 + 1_000);
    expect(times.slice(6)).toEqual([121_000, 121_000 + 30_001 + 1_000]);
    lasts = 0;
    await runtime.until(leadership.stop());
  });

  it('warns that its body still runs ten seconds after its signal was aborted, but not of one that has ended', async () => {
    const { lead, runtime, locks, logger } = await open();
    const bodies = [latch(), latch()];
    let elections = 0;
    const leadership = lead({ onElected: () => bodies[elections++].promise });
    const warnings = () => logger.warnings.filter((line) => line.includes('still runs'));
    await runtime.settle();
    await locks.forceRelease('cleaner');
    await runtime.advance(9_000);
    bodies[0].open();
    await runtime.advance(9_000);
    expect([warnings(), elections]).toEqual([[], 2]);
    await locks.forceRelease('cleaner');
    await runtime.advance(9_999);
    expect(warnings()).toEqual([]);
    await runtime.advance(1);
    expect(warnings()).toEqual([expect.stringContaining('still runs 10 s after')]);
    bodies[1].open();
    await runtime.settle();
    await runtime.until(leadership.stop());
  });

  it('warns once of a body that returns within a second, three times in a row', async () => {
    const { lead, runtime, logger } = await open();
    let elections = 0;
    const leadership = lead({ onElected: async () => void elections++ }, 'Cleaner.start');
    await runtime.settle();
    while (elections < 3) {
      expect(logger.warnings).toEqual([]);
      await runtime.advance(100);
    }
    const warnings = [
      expect.stringMatching(/^Cleaner\.start returned within 1 s of its election 3 times in a row\. .*once$/),
    ];
    expect(logger.warnings).toEqual(warnings);
    await runtime.advance(600_000);
    expect(elections).toBeGreaterThan(6);
    expect(logger.warnings).toEqual(warnings);
    await runtime.until(leadership.stop());
  });

  const pass = (time: number) => new Promise<void>((resolve) => world.runtime.timer(time, resolve));
  it.each<[string, (elections: number) => Promise<unknown>]>([
    ['takes a second', () => pass(1_000)],
    ['throws', () => Promise.reject(new Error('failed'))],
    ['takes longer every third time', async (elections) => elections % 3 === 0 && pass(2_000)],
  ])('does not warn of a body that returns, but %s', async (_, body) => {
    const { lead, runtime, logger } = await open();
    let elections = 0;
    const leadership = lead({ onElected: () => body(++elections) });
    await runtime.advance(600_000);
    expect(elections).toBeGreaterThan(6);
    expect(logger.warnings).toEqual([]);
    await runtime.until(leadership.stop());
  });

  it('lets the lock lapse when its body does not end within shutdownTimeout, and says so', async () => {
    const { lead, runtime, backend, logger, locks } = await open();
    const leadership = lead({ onElected: never });
    await runtime.settle();
    const stopped = leadership.stop();
    expect(leadership.isLeader).toBe(false);
    await runtime.until(stopped);
    expect(runtime.monotonic()).toBe(SHUTDOWN);
    expect(logger.warnings).toEqual([
      "The leader of 'cleaner' still runs 2000 ms after it was asked to stop. Its lock is not renewed any more, and ends with its lease",
    ]);
    await runtime.advance(25_000);
    expect([backend.count('release'), backend.count('renew'), await locks.isLocked('cleaner')]).toEqual([0, 0, true]);
    await runtime.advance(5_000);
    expect(await locks.isLocked('cleaner')).toBe(false);
  });

  it('waits no longer than shutdownTimeout for the answer to its release, or for onRevoked', async () => {
    const { lead, runtime, backend, logger } = await open();
    const first = lead({ onElected: untilAborted, onRevoked: never });
    await runtime.settle();
    await runtime.until(first.stop());
    expect(runtime.monotonic()).toBe(SHUTDOWN);
    let revoked = 0;
    const second = lead({ onElected: untilAborted, onRevoked: () => void revoked++ });
    await runtime.settle();
    const answer = latch();
    backend.disturb(async (execute) => {
      await answer.promise;
      return execute();
    }, 'release');
    await runtime.until(second.stop());
    expect([runtime.monotonic(), logger.warnings, revoked]).toEqual([2 * SHUTDOWN, [], 1]);
    answer.open();
    await runtime.settle();
    expect(revoked).toBe(1);
  });

  it('does not report the loss of its lock again that its body throws', async () => {
    const { lead, runtime, locks, errors, logger } = await open();
    const leadership = lead({
      onElected: async (lease) => {
        await untilAborted(lease);
        throw lease.signal.reason;
      },
    });
    await runtime.settle();
    await locks.forceRelease('cleaner');
    await runtime.settle();
    expect([errors, logger.warnings]).toEqual([[], [expect.stringMatching(/^The lock 'cleaner' was lost: /)]]);
    await runtime.until(leadership.stop());
  });
});
