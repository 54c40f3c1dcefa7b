import { LockUnavailableError } from '../../../lib/engine/errors.js';
import type { LockWaiter } from '../../../lib/engine/hold/held-lock.js';
import { beginWait, mayWait } from '../../../lib/engine/queue/begin-wait.js';
import type { Services } from '../../../lib/engine/services.js';
import type { Caller } from '../../../lib/engine/wait/caller.js';

describe('a caller that is about to wait', () => {
  const refusal = new LockUnavailableError('no connection', 'order');

  const arrive = (active: boolean, answer: Error | undefined) => {
    const asked: unknown[] = [];
    const refused: Error[] = [];
    const caller = { refuse: (error: Error) => void refused.push(error) } as unknown as Caller<never>;
    const arrived = (...call: unknown[]) => {
      asked.push(call);
      return answer;
    };
    const services = { outages: { active, arrived } } as unknown as Services;
    return { may: mayWait(services, caller, 'lock:order'), asked, refused, caller };
  };

  it('may wait without further checks if there is no outage', () => {
    const { may, asked, refused } = arrive(false, refusal);
    expect([may, asked, refused]).toEqual([true, [], []]);
  });

  it('may wait in an outage that it has time for', () => {
    const { may, asked, refused, caller } = arrive(true, undefined);
    expect([may, refused]).toEqual([true, []]);
    expect(asked).toEqual([[caller, ['lock:order']]]);
  });

  it('is refused in an outage that it has no time for', () => {
    const { may, refused } = arrive(true, refusal);
    expect([may, refused]).toEqual([false, [refusal]]);
  });

  it.each([
    [true, ['queue', 'deadlocks']],
    [false, ['queue']],
  ])('can be a part of a deadlock if it runs in a lock scope: %s', (isNested, expected) => {
    const calls: string[] = [];
    const waiter = {} as LockWaiter;
    const callers = {} as never;
    const queue = { callers, enqueue: (queued: LockWaiter) => void (queued === waiter && calls.push('queue')) };
    const add = (added: LockWaiter, place: unknown) =>
      void (added === waiter && place === callers && calls.push('deadlocks'));
    beginWait({ deadlocks: { add } } as unknown as Services, queue, waiter, isNested);
    expect(calls).toEqual(expected);
  });
});
