import { BackendError, type LockBackend, type RenewRequest } from '../../../lib/backends/lock-backend.js';
import { EventHub } from '../../../lib/engine/events/event-hub.js';
import type { LockEvents } from '../../../lib/engine/events/lock-events.js';
import { HeldLock, type LockKeeper } from '../../../lib/engine/hold/held-lock.js';
import { LockRenewer } from '../../../lib/engine/hold/lock-renewer.js';
import { openVirtualWorld, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { errorOf } from '../../support/section.js';
import { refused } from '../../support/watched/watched-backend.js';

describe('a renewal', () => {
  const world = openVirtualWorld();

  it('that fails is announced each time, and leads to one warning until one succeeds', async () => {
    const { locks, backend, runtime, logger } = await world.process();
    const failures: LockEvents['renewalFailed'][] = [];
    locks.on('renewalFailed', (event) => failures.push(event));
    const lease = await locks.acquire('order', { group: 'payments' });
    backend.disturb(refused, 'renew');
    await runtime.advance(20_000);
    expect(failures.length).toBeGreaterThan(1);
    expect(failures[0]).toMatchObject({ name: 'order', group: 'payments', owner: lease.owner });
    const [first, second] = failures.map(({ remainingTime }) => remainingTime);
    expect(first).toBeLessThan(30_000);
    expect(second).toBeLessThan(first);
    expect(logger.warnings).toHaveLength(1);
    backend.heal();
    await runtime.advance(15_000);
    expect(lease.held).toBe(true);
    const announced = failures.length;
    backend.disturb(refused, 'renew');
    await runtime.advance(20_000);
    expect(failures.length).toBeGreaterThan(announced);
    expect(logger.warnings).toHaveLength(2);
    backend.heal();
    await runtime.advance(15_000);
    await lease.release();
  });
});

describe('the renewer of locks', () => {
  const KEEPER: LockKeeper = {
    name: 'order',
    key: 'lock:order',
    giveBack: () => undefined,
    forget: () => {},
    lost: () => {},
  };
  const failure = new BackendError('no answer', 'unavailable', 'unknown');

  /** A renewer whose backend answers as the test says, and a lock. */
  const open = () => {
    const requests: RenewRequest[] = [];
    const answers: ((isHeld: boolean | Error) => void)[] = [];
    const answer = (request: RenewRequest) => {
      requests.push(request);
      return new Promise<boolean>((resolve, reject) => {
        answers.push((isHeld) => (typeof isHeld === 'boolean' ? resolve(isHeld) : reject(isHeld)));
      });
    };
    let owners: { owner: string; remaining: number }[] = [];
    let possibleOwners: string[] | undefined;
    const backend = { description: 'redis', renew: answer, inspect: async () => ({ owners, possibleOwners }) };
    const logger = new RecordingLogger();
    const events = new EventHub(new VirtualRuntime(), logger);
    const renewer = new LockRenewer(backend as unknown as LockBackend, events);
    const sent = { monotonic: 0, wall: 0 };
    const attempt = { type: 'fair', owner: 'ann:1', leaseTime: 10_000, sent, lateCopiesUntil: undefined } as const;
    const held = new HeldLock(KEEPER, { ...attempt, permits: undefined }, false, { token: 1, reserved: 0 }, 0);
    const holders = (all: typeof owners, possible?: string[]) => {
      owners = all;
      possibleOwners = possible;
    };
    return { renewer, held, events, logger, requests, answers, answer, holders };
  };

  it.each([false, true])(
    'knows of a command about the lock until it hears of the answer (failed: %s)',
    async (failed) => {
      const { renewer, held, requests, answers } = open();
      const renewal = renewer.renew(held, 60_000);
      expect(requests).toMatchObject([{ key: 'lock:order', type: 'fair', owner: 'ann:1', leaseTime: 60_000 }]);
      answers[0](true);
      expect(await renewal).toBe(true);
      expect(held.settled).toBe(false);
      renewer.answered(held, failed);
      expect(held.settled).toBe(true);
    },
  );

  describe('warns of failures', () => {
    const warns = ({ renewer, held, logger }: ReturnType<typeof open>) => {
      const before = logger.warnings.length;
      renewer.failed(held, 5_000, failure);
      return logger.warnings.length - before;
    };

    it('once, with the time that is left and the reason', () => {
      const opened = open();
      expect([warns(opened), warns(opened)]).toEqual([1, 0]);
      expect(opened.logger.warnings[0]).toContain("lock 'order'; retrying until its lease ends in 5000 ms: no answer");
    });

    it('once more after a renewal was answered, and not after one that was not', () => {
      const opened = open();
      const { renewer, held } = opened;
      expect(warns(opened)).toBe(1);
      void renewer.renew(held, 10_000);
      renewer.answered(held, true);
      expect(warns(opened)).toBe(0);
      void renewer.renew(held, 10_000);
      renewer.answered(held, false);
      expect(warns(opened)).toBe(1);
    });
  });

  it('announces renewals and failures to those who listen, with the terms of the first lease', () => {
    const { renewer, held, events } = open();
    const emitted: unknown[] = [];
    const { emit } = events;
    events.emit = (event, details) => {
      emitted.push(event);
      emit.call(events, event, details as never);
    };
    renewer.renewed(held);
    renewer.failed(held, 5_000, failure);
    expect(emitted).toEqual([]);
    const heard: unknown[] = [];
    events.on('renewed', (event) => heard.push(event));
    events.on('renewalFailed', (event) => heard.push(event));
    held.share({ terms: { group: 'payments', method: 'Orders.pay' }, lose: () => {}, requestEnd: () => {} } as never);
    renewer.renewed(held);
    renewer.failed(held, 5_000, failure);
    const lock = { name: 'order', type: 'fair', group: 'payments', method: 'Orders.pay', owner: 'ann:1' };
    expect(heard).toEqual([lock, { ...lock, remainingTime: 5_000, error: failure }]);
  });

  it('asks how long the lease of an owner lasts', async () => {
    const { renewer, held, holders } = open();
    expect(await renewer.remaining(held)).toBeUndefined();
    holders([
      { owner: 'bob:1', remaining: 1 },
      { owner: 'ann:1', remaining: 700 },
    ]);
    expect(await renewer.remaining(held)).toBe(700);
    holders([], ['bob:1']);
    expect(await renewer.remaining(held)).toBeUndefined();
  });

  it('knows nothing of an owner that only some nodes have', async () => {
    const { renewer, held, holders } = open();
    holders([], ['bob:1', 'ann:1']);
    const error = await errorOf(renewer.remaining(held));
    expect(error).toMatchObject({ name: 'BackendError', kind: 'unavailable', outcome: 'unknown' });
    expect(error.message).toContain("redis: too few nodes answered to know who holds 'order'");
  });

  it('lets a lock know that it is lost, and why', () => {
    const { renewer, held, logger } = open();
    renewer.lost(held, { reason: 'unanswered' });
    expect(held.lost?.message).toContain("'order' was lost: the backend did not confirm a renewal");
    renewer.warn('The event loop was blocked');
    expect(logger.warnings).toEqual(['The event loop was blocked']);
  });
});
