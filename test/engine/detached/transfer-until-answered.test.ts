import { type Acquired, BackendError, type ReleaseRequest } from '../../../lib/backends/lock-backend.js';
import { PendingAttempts } from '../../../lib/engine/ask/attempt.js';
import { Transfer } from '../../../lib/engine/detached/transfer-until-answered.js';
import { LeaseClock } from '../../../lib/engine/time/lease-clock.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

const ANSWER: Acquired = { acquired: true, token: 7, reserved: 0 } as Acquired;
const TARGET = { key: 'lock:order', type: 'reentrant', owner: 'ann:2' } as const;

describe('a transfer', () => {
  /** A transfer whose requests have these results. */
  const open = (...results: (Acquired | Error | undefined)[]) => {
    const runtime = new VirtualRuntime();
    const released: (ReleaseRequest & { readonly validUntil?: number })[] = [];
    const services = {
      runtime,
      clock: new LeaseClock(runtime),
      pendingAttempts: new PendingAttempts(),
      backgroundReleases: { release: (owner: ReleaseRequest) => void released.push(owner) },
    };
    const { key, type, owner } = TARGET;
    const transfer = new Transfer<Acquired>(services as never, key, type, owner, 30_000);
    const times: number[] = [];
    const request = async () => {
      times.push(runtime.monotonic());
      const result = results.shift();
      if (result instanceof Error) throw result;
      return result;
    };
    return { runtime, released, transfer, times, request };
  };
  const failure = (outcome: 'refused' | 'unknown' = 'unknown', validUntil?: number) =>
    new BackendError('no answer', 'unavailable', outcome, { validUntil });

  it('is requested once if it is answered, and leaves nothing to undo', async () => {
    const { runtime, released, transfer, times, request } = open(ANSWER);
    const outcome = await transfer.untilAnswered(request, () => 0);
    expect(outcome).toMatchObject({ state: 'granted', reply: ANSWER });
    expect([times, runtime.timers]).toEqual([[0], 0]);
    transfer.undo();
    expect(released).toEqual([]);
  });

  it('is requested again after longer and longer pauses, until it is answered', async () => {
    const { runtime, transfer, times, request } = open(failure(), failure(), failure(), ANSWER);
    runtime.random = () => 1;
    const failures: string[] = [];
    const outcome = await runtime.until(
      transfer.untilAnswered(request, ({ error }) => {
        failures.push(error.message);
        return Number.POSITIVE_INFINITY;
      }),
    );
    expect(outcome.state).toBe('granted');
    expect(times).toEqual([0, 50, 150, 350]);
    expect(failures).toEqual(Array(3).fill('no answer'));
  });

  it('pauses no longer than its caller allows', async () => {
    const { runtime, transfer, times, request } = open(failure(), failure(), ANSWER);
    await runtime.until(transfer.untilAnswered(request, () => 10));
    expect(times).toEqual([0, 10, 20]);
  });

  it('ends with what its caller throws', async () => {
    const { runtime, transfer, times, request } = open(failure(), ANSWER);
    const refusal = new Error('the time is over');
    const ended = transfer.untilAnswered(request, () => {
      throw refusal;
    });
    await expect(ended).rejects.toBe(refusal);
    expect([times, runtime.timers]).toEqual([[0], 0]);
  });

  it('is over when the former owner does not hold the lock', async () => {
    const { transfer, request, released } = open(undefined);
    expect((await transfer.untilAnswered(request, () => 0)).state).toBe('gone');
    transfer.undo();
    expect(released).toMatchObject([TARGET]);
  });

  it('is undone by a release of the new owner, once, if one of its requests may have been executed', async () => {
    const { runtime, released, transfer, request } = open(failure('unknown', 8_000), failure('unknown', 4_000), ANSWER);
    await runtime.until(transfer.untilAnswered(request, () => 10));
    transfer.undo();
    transfer.undo();
    expect(released).toEqual([{ ...TARGET, leaseTime: 30_000, validUntil: 8_000, waits: false }]);
  });

  it('leaves nothing to undo if no request was executed', async () => {
    const { runtime, released, transfer, request } = open(failure('refused'), failure('refused'), ANSWER);
    await runtime.until(transfer.untilAnswered(request, () => 10));
    transfer.undo();
    expect(released).toEqual([]);
  });
});
