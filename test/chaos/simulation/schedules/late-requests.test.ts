import { jest } from '@jest/globals';
import { ScriptCall } from '../../../../lib/backends/redis/connection/script-call.js';
import { ServerClock } from '../../../../lib/backends/redis/connection/server-clock.js';
import { itHolds, simulate } from '../run-schedules.js';

describe('the engine, when requests arrive after their callers have left', () => {
  itHolds('leaves no lock that nobody holds', 'lateRequests', ['granted', 'refused']);

  it('leaves some if the server executes such requests', async () => {
    const forgotten = executeLate(60_000);
    const leftLock = /server has left \d+ (locks|queues|lines)/;
    let found = false;
    for (let seed = 1; seed <= 60 && !found; seed++) {
      const { verdict } = await simulate(seed, { kind: 'lateRequests' });
      found = verdict.violations.some(({ message }) => leftLock.test(message));
    }
    forgotten.restore();
    expect(found).toBe(true);
  });
});

/** Requests are executed this many milliseconds after their deadlines, and nobody knows that. */
function executeLate(after: number): { restore(): void } {
  const { deadline } = ServerClock.prototype;
  const validUntil = Object.getOwnPropertyDescriptor(ScriptCall.prototype, 'validUntil')?.get as () => number;
  const later = jest.spyOn(ServerClock.prototype, 'deadline').mockImplementation(function (this: ServerClock, moment) {
    return deadline.call(this, moment + after);
  });
  const unknown = jest.spyOn(ScriptCall.prototype, 'validUntil', 'get').mockImplementation(function (this: ScriptCall) {
    return validUntil.call(this) - after;
  });
  return {
    restore: () => {
      later.mockRestore();
      unknown.mockRestore();
    },
  };
}
