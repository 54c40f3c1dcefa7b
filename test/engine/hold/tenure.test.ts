import type { ReleaseReply, ReleaseRequest } from '../../../lib/backends/lock-backend.js';
import { LockLostError } from '../../../lib/engine/errors.js';
import type { LockEvents } from '../../../lib/engine/events/lock-events.js';
import { HeldLock, type LockKeeper, type LockShare, type LockWaiter } from '../../../lib/engine/hold/held-lock.js';
import { Tenure } from '../../../lib/engine/hold/tenure.js';
import type { AcquisitionTerms } from '../../../lib/engine/terms/lock-options.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';
import { giveBack } from './give-back.js';

const LEASE = 30_000;
/** The reply to a release that was withdrawn means nothing. */
const WITHDRAWN: ReleaseReply = { released: false, listeners: 0, published: false, resent: false };

describe('a lock while its process holds it', () => {
  const world = openVirtualWorld();

  /** The lock of a queue, and what the queue has heard. */
  const open = async () => {
    const process = await world.process();
    const { services } = process.locks.engine;
    const replies: [string, ReleaseReply | undefined][] = [];
    const tenure = new Tenure(services, { released: ({ owner }, reply) => void replies.push([owner, reply]) });
    const keeper: LockKeeper = {
      name: 'order',
      key: services.keyOf('order'),
      giveBack: (held, listener) => tenure.giveBack(held, listener),
      forget: (held) => tenure.forget(held),
      lost: (held) => tenure.forget(held),
    };
    /** A lock that the backend has granted, without a share. */
    const acquire = async (terms: Partial<AcquisitionTerms> = {}) => {
      const { type = 'reentrant', permits, fixed = false } = terms;
      const request = { key: keeper.key, type, owner: services.newOwner(), leaseTime: LEASE, permits };
      const reply = await services.backend.acquire({ ...request, reserve: 0, waiterTimeout: 0 });
      if (!reply.acquired) throw new Error('the lock is busy');
      const attempt = { ...request, sent: services.clock.now(), lateCopiesUntil: undefined };
      return new HeldLock(keeper, attempt, fixed, reply, 0);
    };
    const hold = async (terms?: Partial<AcquisitionTerms>) => {
      const held = await acquire(terms);
      tenure.hold(held, services.clock.now());
      return held;
    };
    const isTaken = async ({ owner }: HeldLock) =>
      (await services.backend.inspect(keeper.key)).owners.some((other) => other.owner === owner);
    return { ...process, services, tenure, replies, acquire, hold, isTaken };
  };
  const owners = (tenure: Tenure) => tenure.holders.map(({ owner }) => owner);

  describe('knows its holders', () => {
    it('none at first', async () => {
      const { tenure, acquire } = await open();
      expect(tenure.holders).toEqual([]);
      expect([tenure.isHeld, tenure.size, tenure.mostHolders]).toEqual([false, 0, 0]);
      expect(tenure.sizeWith(await acquire())).toBe(1);
    });

    it.each([
      [0, [1, 2]],
      [1, [0, 2]],
      [2, [0, 1]],
    ])('without the one that is dropped: %d', async (index, others) => {
      const { tenure, hold } = await open();
      const all = [await hold({ type: 'read' }), await hold({ type: 'read' }), await hold({ type: 'read' })];
      expect(owners(tenure)).toEqual(all.map(({ owner }) => owner));
      expect([tenure.size, tenure.mostHolders]).toEqual([3, 3]);
      for (const held of all) expect(tenure.sizeWith(held)).toBe(3);
      tenure.drop(all[index]);
      expect(owners(tenure)).toEqual(others.map((other) => all[other].owner));
      expect([tenure.isHeld, tenure.size]).toEqual([true, 2]);
      expect(tenure.sizeWith(all[index])).toBe(3);
      for (const other of others) tenure.drop(all[other]);
      expect([tenure.isHeld, tenure.size]).toEqual([false, 0]);
    });

    it('and renews each of them until it is dropped', async () => {
      const { tenure, hold, services, backend, runtime } = await open();
      const [first, second] = [await hold({ type: 'read' }), await hold({ type: 'read' })];
      expect([first, second].map((held) => services.watchdog.guards(held))).toEqual([true, true]);
      tenure.drop(second);
      expect([first, second].map((held) => services.watchdog.guards(held))).toEqual([true, false]);
      await runtime.advance(LEASE / 2);
      expect(backend.count('renew')).toBe(1);
      tenure.drop(first);
    });

    it('as far as others have certainly left', async () => {
      const { tenure, hold } = await open();
      await hold({ type: 'permits', permits: 3 });
      tenure.beginDeparture();
      tenure.beginDeparture();
      expect([tenure.size, tenure.mostHolders, tenure.isDeparting]).toEqual([1, 3, true]);
      tenure.endDeparture();
      expect([tenure.mostHolders, tenure.isDeparting]).toEqual([2, true]);
      tenure.endDeparture();
      expect([tenure.mostHolders, tenure.isDeparting]).toEqual([1, false]);
    });
  });

  describe('is given back', () => {
    it('and departs until the answer comes, which its queue hears of', async () => {
      const { tenure, hold, backend, replies, isTaken, services } = await open();
      const held = await hold();
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'release');
      const released = giveBack(tenure, held);
      expect([tenure.isHeld, tenure.isDeparting, tenure.mostHolders]).toEqual([false, true, 1]);
      expect(services.watchdog.guards(held)).toBe(false);
      expect(tenure.leaving).toBe(held.owner);
      answer.open();
      expect(await released).toBe('released');
      expect(replies).toMatchObject([[held.owner, { released: true }]]);
      expect([tenure.isDeparting, tenure.leaving]).toEqual([false, undefined]);
      expect(await isTaken(held)).toBe(false);
    });

    it('and has departed without an answer, too, after which the background releases it', async () => {
      const { tenure, hold, backend, replies, isTaken, runtime } = await open();
      const held = await hold();
      backend.disturb(refused, 'release');
      expect(await giveBack(tenure, held)).toBe('unreachable');
      expect(replies).toEqual([[held.owner, undefined]]);
      expect([tenure.isDeparting, tenure.leaving]).toEqual([false, undefined]);
      backend.heal();
      await runtime.advance(1_000);
      expect(await isTaken(held)).toBe(false);
    });

    it('and leaves nobody behind only if no other holder is there', async () => {
      const { tenure, hold, backend } = await open();
      const [first] = [await hold({ type: 'read' }), await hold({ type: 'read' })];
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'release');
      const released = giveBack(tenure, first);
      expect(tenure.leaving).toBeUndefined();
      answer.open();
      await released;
    });

    it('and names the latest one that leaves until its own release is answered', async () => {
      const { tenure, hold, backend, runtime } = await open();
      const [first, second] = [await hold({ type: 'read' }), await hold({ type: 'read' })];
      const answers = [latch(), latch()];
      backend.disturb(answerAfter(answers[0].promise), 'release');
      void giveBack(tenure, first);
      backend.disturb(answerAfter(answers[1].promise), 'release');
      void giveBack(tenure, second);
      expect(tenure.leaving).toBe(second.owner);
      answers[0].open();
      await runtime.settle();
      expect([tenure.leaving, tenure.isDeparting]).toEqual([second.owner, true]);
      answers[1].open();
      await runtime.settle();
      expect([tenure.leaving, tenure.isDeparting]).toEqual([undefined, false]);
    });
  });

  describe('whose release is not sent yet', () => {
    /** A lock that is given back, by a release that can be recalled. */
    const leaving = async (terms?: Partial<AcquisitionTerms>) => {
      const opened = await open();
      const { tenure, hold, backend } = opened;
      const held = await hold(terms);
      const answer = latch();
      const sent: ReleaseRequest[] = [];
      backend.disturb(async (execute, request) => {
        sent.push(request as ReleaseRequest);
        await answer.promise;
        return sent[0].leavesQueue?.() === false ? WITHDRAWN : execute();
      }, 'release');
      const released = giveBack(tenure, held);
      const [release] = sent;
      release.queued?.();
      return { ...opened, held, answer, released, release };
    };

    it('can be recalled, and is held as before', async () => {
      const { tenure, held, replies, answer, services, runtime } = await leaving();
      const { recallable } = tenure;
      expect(recallable?.held).toBe(held);
      tenure.recall(recallable as never);
      expect([tenure.isDeparting, tenure.leaving, tenure.recallable]).toEqual([false, undefined, undefined]);
      tenure.hold(held, services.clock.now());
      expect(tenure.isHeld).toBe(true);
      recallable?.passed('released');
      answer.open();
      await runtime.settle();
      expect(replies).toEqual([]);
      tenure.drop(held);
    });

    it('cannot be recalled while others depart, too, or once it was sent', async () => {
      const { tenure, release, answer, runtime } = await leaving();
      tenure.beginDeparture();
      expect(tenure.recallable).toBeUndefined();
      tenure.endDeparture();
      expect(tenure.recallable).toBeDefined();
      release.leavesQueue?.();
      expect(tenure.recallable).toBeUndefined();
      answer.open();
      await runtime.settle();
    });

    it('is given back by the same request if it is still unsent', async () => {
      const { tenure, held, backend, replies, answer, services, runtime, release } = await leaving();
      const { recallable } = tenure;
      tenure.recall(recallable as never);
      recallable?.passed('released');
      tenure.hold(held, services.clock.now());
      const again = giveBack(tenure, held);
      expect(backend.count('release')).toBe(1);
      expect([tenure.isDeparting, tenure.leaving]).toEqual([true, held.owner]);
      expect(tenure.recallable).toBe(recallable);
      release.leavesQueue?.();
      answer.open();
      expect(await again).toBe('released');
      expect(replies).toHaveLength(1);
      await runtime.settle();
      expect(tenure.isDeparting).toBe(false);
    });

    it('is given back by another request if that one was sent, or is that of another holder', async () => {
      const { tenure, held, backend, answer, services, runtime, release, acquire } = await leaving({ type: 'read' });
      const { recallable } = tenure;
      tenure.recall(recallable as never);
      recallable?.passed('released');
      const other = await acquire({ type: 'read' });
      tenure.hold(other, services.clock.now());
      void giveBack(tenure, other);
      expect(backend.count('release')).toBe(2);
      tenure.hold(held, services.clock.now());
      release.leavesQueue?.();
      void giveBack(tenure, held);
      expect(backend.count('release')).toBe(3);
      answer.open();
      await runtime.settle();
    });
  });

  describe('that is left to lapse', () => {
    it('is no longer renewed, and neither is the reading of its writer', async () => {
      const { tenure, hold, services } = await open();
      const held = await hold({ type: 'write' });
      let abandoned = 0;
      held.downgrade = { enqueue: () => {}, abandon: () => void abandoned++ };
      tenure.forget(held);
      expect([abandoned, tenure.isHeld, services.watchdog.guards(held)]).toEqual([1, false, false]);
    });

    it.each([
      ['was abandoned', 'released'],
      ['was lost', 'gone'],
    ] as const)('because it %s is released in the backend alone when it is given back', async (why, outcome) => {
      const { tenure, hold, services, runtime, isTaken, replies } = await open();
      const held = await hold();
      if (why === 'was lost') held.lose(new LockLostError('gone', 'order'));
      else held.abandon(new Error('shutdown'));
      services.watchdog.guard(held, services.clock.now());
      expect(tenure.giveBackForgotten(held)).toBe(outcome);
      expect(services.watchdog.guards(held)).toBe(false);
      await runtime.settle();
      expect(await isTaken(held)).toBe(false);
      expect([tenure.isDeparting, replies]).toEqual([false, []]);
    });

    it('is not given back as such if it is still held', async () => {
      const { tenure, hold, services, backend } = await open();
      const held = await hold();
      expect(tenure.giveBackForgotten(held)).toBeUndefined();
      expect(services.watchdog.guards(held)).toBe(true);
      expect(backend.count('release')).toBe(0);
      tenure.drop(held);
    });
  });

  describe('that is lost', () => {
    const share: LockShare = {
      terms: { group: 'payments', method: 'Orders.pay' } as LockShare['terms'],
      lose: () => {},
      requestEnd: () => {},
    };

    it('is reported with the terms of its first share, and not released', async () => {
      const { tenure, hold, locks, backend, runtime } = await open();
      const losses: LockEvents['lost'][] = [];
      locks.on('lost', (event) => losses.push(event));
      const held = await hold();
      held.share(share);
      held.lose(new LockLostError('gone', 'order'));
      tenure.reportLoss(held);
      await runtime.settle();
      const lock = { name: 'order', type: 'reentrant', group: 'payments', method: 'Orders.pay', owner: held.owner };
      expect(losses).toMatchObject([{ ...lock, error: held.lost }]);
      expect(backend.count('release')).toBe(0);
    });

    it('is released if nobody shares it, and not reported', async () => {
      const { tenure, hold, locks, isTaken, runtime } = await open();
      const losses: unknown[] = [];
      locks.on('lost', (event) => losses.push(event));
      const held = await hold();
      held.lose(new LockLostError('gone', 'order'));
      tenure.reportLoss(held);
      await runtime.settle();
      expect(losses).toEqual([]);
      expect(await isTaken(held)).toBe(false);
    });
  });

  describe('and is busy for one of its callers', () => {
    const busy = (holder: string | undefined) => ({ acquired: false, remaining: 1_000, holder }) as const;
    const caller = () => ({ askedAgain: false }) as LockWaiter;

    it('departs for a caller that asks behind the release of the holder, which it does once', async () => {
      const { tenure, hold, backend, runtime } = await open();
      const held = await hold();
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'release');
      void giveBack(tenure, held);
      const waiter = caller();
      const departing: boolean[] = [];
      const asks = () => tenure.asksBehindRelease(waiter, busy(held.owner), () => departing.push(tenure.isDeparting));
      expect(asks()).toBe(true);
      expect([waiter.askedAgain, tenure.mostHolders, departing]).toEqual([true, 2, []]);
      expect(asks()).toBe(false);
      expect(tenure.mostHolders).toBe(2);
      answer.open();
      await runtime.settle();
      expect(departing).toHaveLength(1);
      expect(tenure.isDeparting).toBe(false);
    });

    it('stays busy if nobody of its process leaves, or if another one holds it', async () => {
      const { tenure, hold, backend, runtime } = await open();
      const held = await hold();
      const waiter = caller();
      expect(tenure.asksBehindRelease(waiter, busy(held.owner), () => {})).toBe(false);
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'release');
      void giveBack(tenure, held);
      for (const holder of ['eve:1', undefined])
        expect(tenure.asksBehindRelease(waiter, busy(holder), () => {})).toBe(false);
      expect([waiter.askedAgain, tenure.mostHolders]).toEqual([false, 1]);
      answer.open();
      await runtime.settle();
    });
  });
});
