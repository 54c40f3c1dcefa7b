import { AsyncLocalStorage } from 'node:async_hooks';
import { channel, tracingChannel } from 'node:diagnostics_channel';
import type { AcquireMessage, HoldMessage, Lease } from '../../../lib/core.js';
import { LockBusyError } from '../../../lib/engine/errors.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { PLACES, Place } from '../../support/places.js';
import { until } from '../../support/until.js';

const acquire = tracingChannel<unknown, AcquireMessage>('nestjs-redis-lock:acquire');
const hold = tracingChannel<unknown, HoldMessage>('nestjs-redis-lock:hold');

/** The steps that a tracing channel publishes, with its messages. */
function record<M extends object>(traced: ReturnType<typeof tracingChannel<unknown, M>>) {
  const steps: { step: string; message: M; seen: M }[] = [];
  const note = (step: string) => (message: unknown) =>
    void steps.push({ step, message: message as M, seen: { ...(message as M) } });
  const subscribers = {
    start: note('start'),
    end: note('end'),
    asyncStart: note('asyncStart'),
    asyncEnd: note('asyncEnd'),
    error: note('error'),
  };
  traced.subscribe(subscribers as never);
  return { steps, stop: () => traced.unsubscribe(subscribers as never) };
}

describe.each(PLACES.slice(0, 2))('the tracing channels, with locks in %s', (name) => {
  let place: Place;
  let locks: LockService;
  let acquired: ReturnType<typeof record<AcquireMessage>>;
  let held: ReturnType<typeof record<HoldMessage>>;
  beforeAll(async () => {
    place = await Place.open(name);
  });
  afterAll(() => place.close());
  beforeEach(() => {
    locks = place.service().locks;
    acquired = record(acquire);
    held = record(hold);
  });
  afterEach(() => {
    acquired.stop();
    held.stop();
    return place.closeServices();
  });

  it('show an acquisition and its hold, linked', async () => {
    await locks.withLock('order:1', { group: 'payments' }, async (lease) => {
      expect(acquired.steps.at(-1)?.message).toMatchObject({
        name: 'order:1',
        names: ['order:1'],
        type: 'reentrant',
        group: 'payments',
        outcome: 'acquired',
        reentry: false,
        owner: lease.owner,
        fencingToken: lease.fencingToken,
        waited: expect.any(Number),
      });
    });
    expect(acquired.steps.map(({ step }) => step)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
    expect(held.steps.map(({ step }) => step)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
    const { message, seen } = held.steps[0];
    expect(seen.held).toBeUndefined();
    expect(message).toMatchObject({
      name: 'order:1',
      group: 'payments',
      outcome: 'released',
      held: expect.any(Number),
    });
    expect(message.acquisition).toBe(acquired.steps[0].message);
  });

  it.each([
    ['as it is', undefined],
    ['with another lease', '50s'],
  ] as const)('say of an acquisition whether a caller of this process passed the lock on: %s', async (_, leaseTime) => {
    // A busy machine may need longer than the 25 ms in which a process may pass a lock on.
    await until(async () => {
      acquired.steps.length = 0;
      const first = await locks.acquire('order:1');
      const next = locks.acquire('order:1', { leaseTime });
      await until(() => locks.engine.waiting('order:1') === 1);
      await first.release();
      await (await next).release();
      const other = await locks.acquire('order:1');
      await other.release();
      const ended = acquired.steps.filter(({ step }) => step === 'asyncEnd').map(({ seen }) => seen.handedOff);
      expect(ended).toEqual([false, expect.any(Boolean), false]);
      return ended[1];
    });
  });

  it('bind the body to the store of the hold, and the acquisition to its own', async () => {
    const store = new AsyncLocalStorage<string>();
    hold.start.bindStore(store as never, (message) => `hold of ${(message as HoldMessage).name}` as never);
    try {
      expect(await locks.withLock('order:1', async () => store.getStore())).toBe('hold of order:1');
      expect(store.getStore()).toBeUndefined();
    } finally {
      hold.start.unbindStore(store as never);
    }
  });

  it('show leases without a body', async () => {
    const lease = await locks.acquire('order:1');
    await until(() => held.steps.length >= 2);
    expect(held.steps.map(({ step }) => step)).toEqual(['start', 'end']);
    await lease.release();
    await lease.release();
    expect(held.steps.map(({ step }) => step)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
  });

  it('distinguish a re-entry from the hold around it', async () => {
    await locks.withLock('order:1', () => locks.withLock('order:1', async () => {}));
    expect(held.steps.filter(({ step }) => step === 'start').map(({ message }) => message.reentry)).toEqual([
      false,
      true,
    ]);
  });

  it('show several locks as one', async () => {
    await locks.withLock(['b', 'a'], async () => {});
    expect(held.steps[0].message).toMatchObject({ names: ['a', 'b'], name: 'a, b', outcome: 'released' });
  });

  it('show how acquisitions fail, as `failed` does', async () => {
    const failed: unknown[] = [];
    locks.on('failed', ({ outcome, name: lock, waited, error }) =>
      failed.push([outcome, lock, waited >= 0, error.name]),
    );
    const lease = await locks.acquire('order:1', { type: 'read' });
    const tries = [
      () => locks.acquire('order:1', { waitTime: 0 }),
      () => locks.tryAcquire('order:1'),
      () => locks.acquire('order:1', { signal: AbortSignal.abort() }),
      () => locks.acquire(''),
      () => locks.acquire('order:1', { waitTime: -1 }),
      () => lease.run(() => locks.acquire('order:1', { type: 'write' })),
    ];
    for (const attempt of tries) await attempt().catch(() => {});
    const outcomes = acquired.steps.filter(({ step }) => step === 'asyncEnd').map(({ message }) => message.outcome);
    expect(outcomes).toEqual(['acquired', 'busy', 'busy', 'aborted', 'refused', 'refused']);
    expect(failed).toEqual([
      ['busy', 'order:1', true, 'LockBusyError'],
      ['busy', 'order:1', true, 'LockBusyError'],
      ['aborted', 'order:1', true, 'LockAbortedError'],
      ['refused', '', true, 'LockKeyError'],
      ['refused', 'order:1', true, 'LockUpgradeError'],
    ]);
    expect(acquired.steps.find(({ step }) => step === 'error')?.message.error).toBeInstanceOf(LockBusyError);
  });

  it('show the error of a busy lock with a stack trace only if the caller gets it', async () => {
    const lease = await locks.acquire('order:1');
    const limit = Error.stackTraceLimit;
    await locks.acquire('order:1', { waitTime: 0 }).catch(() => {});
    await locks.tryAcquire('order:1');
    await locks.tryAcquire('order:1', { waitTime: 1 });
    const errors = acquired.steps.filter(({ step }) => step === 'error').map(({ message }) => message.error as Error);
    expect(errors.map(({ stack }) => stack?.includes('\n    at '))).toEqual([true, false, false]);
    for (const { stack } of errors) expect(stack).toMatch(/^LockBusyError: The lock 'order:1' is busy/);
    expect(Error.stackTraceLimit).toBe(limit);
    await lease.release();
  });

  it('show a lock that was lost, in the channel of losses, too', async () => {
    const lost: unknown[] = [];
    const listener = (message: unknown) => void lost.push(message);
    channel('nestjs-redis-lock:lost').subscribe(listener);
    const lease: Lease = await locks.acquire('order:1', { group: 'payments' });
    await locks.forceRelease('order:1');
    expect(lease.held).toBe(false);
    expect(held.steps.map(({ step }) => step)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
    expect(held.steps[0].message).toMatchObject({ outcome: 'lost', error: expect.any(Error) });
    expect(lost).toEqual([
      {
        name: 'order:1',
        type: 'reentrant',
        group: 'payments',
        method: '',
        owner: lease.owner,
        held: expect.any(Number),
        error: expect.any(Error),
      },
    ]);
    channel('nestjs-redis-lock:lost').unsubscribe(listener);
  });

  it('show hand-offs', async () => {
    const handoffs: unknown[] = [];
    const listener = (message: unknown) => void handoffs.push(message);
    channel('nestjs-redis-lock:handoff').subscribe(listener);
    await until(async () => {
      await Promise.all(Array.from({ length: 5 }, () => locks.withLock('order:1', { group: 'x' }, async () => {})));
      return handoffs.length > 0;
    });
    expect(handoffs[0]).toMatchObject({ name: 'order:1', type: 'reentrant', group: 'x', owner: expect.any(String) });
    channel('nestjs-redis-lock:handoff').unsubscribe(listener);
  });
});
