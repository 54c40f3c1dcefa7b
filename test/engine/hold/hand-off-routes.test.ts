import type { TransferRequest } from '../../../lib/backends/lock-backend.js';
import { Attempt, type Outcome } from '../../../lib/engine/ask/attempt.js';
import { LinkedQueue } from '../../../lib/engine/collections/linked-queue.js';
import { LockLostError } from '../../../lib/engine/errors.js';
import { HandOff } from '../../../lib/engine/hold/hand-off.js';
import {
  HeldLock,
  type LockKeeper,
  type LockWaiter,
  type ReleaseListener,
} from '../../../lib/engine/hold/held-lock.js';
import type { RecallableRelease } from '../../../lib/engine/hold/recallable-release.js';
import { Tenure } from '../../../lib/engine/hold/tenure.js';
import { kindOf, wayOf } from '../../../lib/engine/queue/ways-of-asking.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { type AcquisitionTerms, DEFAULT_TERMS } from '../../../lib/engine/terms/lock-options.js';
import { Waiter } from '../../../lib/engine/wait/waiter.js';
import { ms, openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';
import { answerAfter, answerLost, refused } from '../../support/watched/watched-backend.js';
import { giveBack } from './give-back.js';

const LEASE = ms(30_000);

describe('a lock that its holder passes on', () => {
  const world = openVirtualWorld();

  /** The queue of a lock that this process holds, whose owner has tokens for others. */
  const open = async (terms: Partial<AcquisitionTerms> = {}, reserved = 64) => {
    const process = await world.process();
    const { runtime } = process;
    const { services } = process.locks.engine;
    await runtime.advance(1_000);
    const { type = 'reentrant', permits, fixed = false } = terms;
    const log: string[] = [];
    const waiting = new LinkedQueue<LockWaiter>();
    const tenure = new Tenure(services, { released: () => {} });
    const keeper: LockKeeper = {
      name: 'order',
      key: services.keyOf('order'),
      giveBack: (held, listener) => queue.giveBack(held, listener),
      forget: (held) => tenure.forget(held),
      lost: (held) => tenure.forget(held),
    };
    const queue = {
      key: keeper.key,
      waiting,
      get heir() {
        return waiting.first;
      },
      hold: (held: HeldLock, now = services.clock.now()) => {
        log.push(`held at ${now.monotonic}`);
        tenure.hold(held, now);
      },
      giveBack: (held: HeldLock, listener: ReleaseListener) => {
        log.push('given back');
        return tenure.giveBack(held, listener);
      },
      renewSpentOwner: (waiter: LockWaiter) => {
        if (waiter.ownerSpent) waiter.renewOwner();
      },
      recalled: (release: RecallableRelease, now: { monotonic: number; wall: number }) => {
        tenure.recall(release);
        tenure.hold(release.held, now);
      },
      transferred: (waiter: LockWaiter, { state }: Outcome) => {
        waiter.attempt = undefined;
        log.push(`transferred: ${state}, departing: ${tenure.isDeparting}, held: ${tenure.isHeld}`);
      },
      resume: () => void log.push('resumed'),
      passes: (held: HeldLock, next: LockWaiter) => wayOf(kindOf(next.terms)).passes(held, next, tenure),
    };
    const acquire = async () => {
      const request = { key: keeper.key, type, owner: services.newOwner(), leaseTime: LEASE, permits };
      const reply = await services.backend.acquire({ ...request, reserve: reserved, waiterTimeout: 0 });
      if (!reply.acquired) throw new Error('the lock is busy');
      const attempt = { ...request, sent: services.clock.now(), lateCopiesUntil: undefined };
      const held = new HeldLock(keeper, attempt, fixed, { token: reply.token, reserved }, runtime.monotonic());
      tenure.hold(held, attempt.sent);
      return held;
    };
    const held = await acquire();
    const granted: [LockWaiter, HeldLock][] = [];
    const wait = (own: Partial<AcquisitionTerms> = {}): LockWaiter => {
      const waiter: LockWaiter = new Waiter<HeldLock>(
        'order',
        services.newOwner,
        {
          ...DEFAULT_TERMS,
          waitTime: FOREVER,
          outageTimeout: FOREVER,
          leaseTime: LEASE,
          onLost: 'throw',
          release: 'confirmed',
          type,
          permits,
          ...own,
        },
        runtime,
        (lock) => granted.push([waiter, lock]),
        () => {},
      );
      waiting.push(waiter);
      return waiter;
    };
    const events: unknown[] = [];
    process.locks.on('handoff', (event) => events.push(event));
    const handOff = new HandOff(services, queue, tenure);
    return { ...process, services, handOff, tenure, queue, waiting, keeper, held, acquire, wait, granted, log, events };
  };

  it('stays as it is for the next caller, with another token', async () => {
    const { handOff, held, wait, granted, waiting, backend, events } = await open();
    const next = wait({ group: 'payments', method: 'Orders.pay' });
    const [{ token }, commands] = [held, backend.count()];
    expect(handOff.pass(held, next)).toBe('released');
    expect(granted).toEqual([[next, held]]);
    expect([held.token, held.handedOff, held.block?.left]).toEqual([token + 1, true, 63]);
    expect(waiting.length).toBe(0);
    expect(backend.count()).toBe(commands);
    const { owner } = held;
    const lock = { name: 'order', type: 'reentrant', group: 'payments', method: 'Orders.pay' };
    expect(events).toEqual([{ ...lock, owner, fencingToken: token + 1 }]);
  });

  it('is judged at the moment that is given, so that the clocks are read once', async () => {
    const { handOff, held, wait, runtime, services } = await open();
    const now = services.clock.now();
    runtime.block(100);
    expect(handOff.pass(held, wait(), now)).toBe('released');
    expect(handOff.pass(held, wait())).toBe(false);
  });

  describe('leaves its process', () => {
    type Opened = Awaited<ReturnType<typeof open>>;
    const nothing = () => {};

    it.each<[string, Partial<AcquisitionTerms>, Partial<AcquisitionTerms>, (opened: Opened) => void]>([
      [
        'after its writer has read',
        { type: 'write' },
        {},
        ({ held }) => {
          held.downgrade = { enqueue: () => {}, abandon: () => {} };
        },
      ],
      ['after its budget', {}, {}, ({ runtime }) => runtime.block(25)],
      ['if the next caller tries once', {}, { waitTime: ms(0) }, nothing],
      ['if the next caller waits as the newest one', {}, { newest: true }, nothing],
      ['if it is a fair lock', { type: 'fair' }, {}, nothing],
      ['if it is a read lock', { type: 'read' }, {}, nothing],
      ['if the next caller reads', { type: 'write' }, { type: 'read' }, nothing],
      ['if the next caller lets fewer hold it', { type: 'permits', permits: 3 }, { permits: 2 }, nothing],
      ['if the next caller lets one hold it', { type: 'permits', permits: 2 }, { permits: undefined }, nothing],
    ])('%s', async (_, mine, theirs, change) => {
      const opened = await open(mine);
      const { handOff, held, wait, granted, waiting, backend, tenure } = opened;
      const next = wait(theirs);
      change(opened);
      const commands = backend.count();
      expect(handOff.pass(held, next)).toBe(false);
      expect([granted, backend.count(), waiting.length, tenure.isHeld]).toEqual([[], commands, 1, true]);
    });

    it('if its process has too many of its permits for the next caller', async () => {
      const { handOff, held, wait, acquire, tenure } = await open({ type: 'permits', permits: 2 });
      const second = await acquire();
      expect(handOff.pass(held, wait())).toBe('released');
      const third = Object.assign(Object.create(held), { owner: 'ann:9' });
      tenure.hold(third, held.confirmed);
      expect(handOff.pass(held, wait())).toBe(false);
      for (const one of [second, third]) tenure.drop(one);
      expect(handOff.pass(held, wait())).toBe('released');
    });

    it('if the next caller would need a command, and has sent one already', async () => {
      const { handOff, held, wait, services, keeper, backend } = await open({ fixed: true });
      const next = wait({ fixed: true });
      next.attempt = new Attempt(services, keeper.key, next.owner, next.terms);
      expect(handOff.pass(held, next)).toBe(false);
      next.attempt = undefined;
      expect(await handOff.pass(held, next)).toBe('released');
      expect(backend.commands.at(-1)).toBe('transfer');
    });

    it('if it was acquired together with others, on a backend in which callers wait', async () => {
      const { handOff, held, wait, backend } = await open({}, 0);
      Object.assign(backend, { blocking: {} });
      expect(handOff.pass(held, wait())).toBe(false);
      Object.assign(backend, { blocking: undefined });
      expect(await handOff.pass(held, wait())).toBe('released');
    });
  });

  it('is passed on by a command on a backend in which callers wait, if it was acquired alone', async () => {
    const { handOff, held, wait, backend, granted } = await open({ fixed: true });
    Object.assign(backend, { blocking: {} });
    expect(await handOff.pass(held, wait())).toBe('released');
    expect([backend.commands.at(-1), granted.length]).toEqual(['transfer', 1]);
  });

  it('with permits is inherited by a caller that lets as many hold it', async () => {
    const { handOff, held, wait, granted } = await open({ type: 'permits', permits: 2 });
    expect(handOff.pass(held, wait())).toBe('released');
    expect(handOff.pass(held, wait({ permits: 3 }))).toBe('released');
    expect(granted).toHaveLength(2);
  });

  describe('by a command', () => {
    /** It has no tokens for others. */
    const passing = async (terms: Partial<AcquisitionTerms> = {}) => {
      const opened = await open(terms, 0);
      const requests: TransferRequest[] = [];
      opened.backend.disturb((execute, request) => {
        requests.push(request as TransferRequest);
        return execute();
      }, 'transfer');
      return { ...opened, requests };
    };

    it('belongs to the owner of the next caller, from when that was requested on', async () => {
      const { handOff, held, wait, granted, requests, runtime, log, tenure, events } = await passing();
      const next = wait({ leaseTime: ms(5_000), fixed: true, group: 'payments' });
      const { owner } = next;
      const passed = handOff.pass(held, next);
      expect([tenure.isHeld, tenure.isDeparting, next.attempt?.owner]).toEqual([false, true, owner]);
      runtime.block(3);
      expect(await passed).toBe('released');
      const request = { key: 'lock:1:order', type: 'reentrant', from: held.owner, to: owner, leaseTime: 5_000 };
      expect(requests).toMatchObject([{ ...request, key: expect.stringContaining('order'), reserve: 0 }]);
      const [[waiter, heir]] = granted;
      expect(waiter).toBe(next);
      expect(heir).toMatchObject({ owner, fixed: true, leaseTime: 5_000, handedOff: true, since: held.since });
      expect(heir.confirmed.monotonic).toBe(1_000);
      expect(heir.token).toBeGreaterThan(held.token);
      expect(heir.keeper).toBe(held.keeper);
      expect(log).toEqual(['transferred: granted, departing: false, held: false', 'held at 1003', 'resumed']);
      expect(events).toMatchObject([{ group: 'payments', owner, fencingToken: heir.token }]);
    });

    it('reserves tokens if more than one caller waits, or if callers follow one another', async () => {
      const { handOff, held, wait, requests, backend } = await passing();
      const next = wait();
      expect(handOff.reserve).toBe(0);
      wait();
      expect(handOff.reserve).toBe(64);
      backend.hasLines = true;
      await handOff.pass(held, next);
      expect(requests).toMatchObject([{ reserve: 64 }]);
    });

    it('asks under another owner id if the one of the caller is spent', async () => {
      const { handOff, held, wait, requests } = await passing();
      const next = wait();
      const { owner } = next;
      next.ownerSpent = true;
      await handOff.pass(held, next);
      expect(requests[0].to).not.toBe(owner);
      expect(requests[0].to).toBe(next.owner);
    });

    it('is given back if its caller has left meanwhile', async () => {
      const { handOff, held, wait, granted, waiting, log, tenure, locks, runtime, events } = await passing();
      const next = wait();
      const passed = handOff.pass(held, next);
      waiting.remove(next);
      expect(await passed).toBe('released');
      expect(log.slice(-2)).toEqual(['given back', 'resumed']);
      await runtime.settle();
      expect([granted, events, tenure.isHeld, tenure.isDeparting]).toEqual([[], [], false, false]);
      expect(await locks.isLocked('order')).toBe(false);
    });

    it('is gone if its owner did not hold it any more', async () => {
      const { handOff, held, wait, granted, log, backend, tenure } = await passing();
      backend.disturb(async () => undefined, 'transfer');
      expect(await handOff.pass(held, wait())).toBe('gone');
      expect(log).toEqual(['transferred: gone, departing: false, held: false', 'resumed']);
      expect([granted, tenure.isHeld, backend.count('release')]).toEqual([[], false, 0]);
    });

    it.each([
      ['was lost', answerLost],
      ['is missing, because it was not sent', refused],
    ])('is released in the background, and still waited for, if the answer %s', async (_, disturbance) => {
      const { handOff, held, wait, granted, log, backend, runtime } = await passing();
      backend.disturb(disturbance, 'transfer');
      const owners: string[] = [];
      backend.disturb((execute, request) => {
        owners.push((request as { owner: string }).owner);
        return execute();
      }, 'release');
      expect(await handOff.pass(held, wait())).toBe('unreachable');
      expect(log).toEqual(['transferred: failed, departing: false, held: false', 'resumed']);
      await runtime.settle();
      expect([granted, owners]).toEqual([[], [held.owner]]);
    });

    it('was released although the answer came too late for its next caller', async () => {
      const { handOff, held, wait, granted, log, backend, runtime } = await passing();
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'transfer');
      const passed = handOff.pass(held, wait({ leaseTime: ms(5_000) }));
      runtime.block(5_000);
      answer.open();
      expect(await passed).toBe('released');
      expect(log).toEqual(['transferred: failed, departing: false, held: false', 'resumed']);
      expect([granted, backend.count('release')]).toEqual([[], 0]);
    });

    it.each([
      [undefined, 0],
      [0, 1],
    ])('has its former owner released if a copy of its acquisition may arrive: until %s', async (until, count) => {
      const { handOff, held, wait, backend, runtime } = await passing();
      held.lateCopiesUntil = until;
      await handOff.pass(held, wait());
      await runtime.settle();
      expect(backend.count('release')).toBe(count);
    });
  });

  describe('for the 256th time', () => {
    /** It has been handed off 255 times. */
    const passed = async () => {
      const opened = await open({}, 1_000);
      const { handOff, held, wait, granted, runtime } = opened;
      for (let n = 0; n < 255; n++) handOff.pass(held, wait());
      expect(granted).toHaveLength(255);
      let turns = 0;
      const turn = runtime.nextTurn.bind(runtime);
      runtime.nextTurn = (callback) => {
        turns++;
        turn(callback);
      };
      return { ...opened, turns: () => turns };
    };

    it('goes to the next caller after a turn of the event loop, and then at once again', async () => {
      const { handOff, held, wait, granted, runtime, turns } = await passed();
      expect(handOff.pass(held, wait())).toBe('released');
      expect(granted).toHaveLength(255);
      await runtime.settle();
      expect(granted).toHaveLength(256);
      handOff.pass(held, wait());
      expect([granted.length, turns()]).toEqual([257, 1]);
    });

    it('goes to whoever is the next one by then', async () => {
      const { handOff, held, wait, granted, waiting, runtime } = await passed();
      const [leaving, next] = [wait(), wait()];
      handOff.pass(held, leaving);
      waiting.remove(leaving);
      await runtime.settle();
      expect(granted.slice(255)).toEqual([[next, held]]);
    });

    it('goes to nobody if it was lost by then', async () => {
      const { handOff, held, wait, granted, runtime, log } = await passed();
      handOff.pass(held, wait());
      held.lose(new LockLostError('gone', 'order'));
      await runtime.settle();
      expect([granted.length, log]).toEqual([255, []]);
    });

    it.each(['nobody waits', 'it would need a command'])('is given back if %s by then', async (why) => {
      const { handOff, held, wait, granted, waiting, runtime, log, locks } = await passed();
      const next = wait();
      handOff.pass(held, next);
      waiting.remove(next);
      if (why !== 'nobody waits') wait({ fixed: true });
      await runtime.settle();
      expect([granted.length, log]).toEqual([255, ['given back']]);
      expect(await locks.isLocked('order')).toBe(false);
    });
  });

  describe('although it was given back', () => {
    /** A release that was not sent yet, and the outcome that its caller hears of. */
    const leaving = async (terms: Partial<AcquisitionTerms> = {}, reserved = 64) => {
      const opened = await open(terms, reserved);
      const { tenure, held, backend } = opened;
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'release');
      const released = giveBack(tenure, held) as Promise<string>;
      const release = (tenure as unknown as { release: RecallableRelease }).release;
      release.queued();
      return { ...opened, release, released, answer };
    };

    it('is held as before by the caller that arrives', async () => {
      const { handOff, release, wait, held, granted, tenure, released, answer } = await leaving();
      expect(handOff.recall(release, wait())).toBe(true);
      expect(granted.map(([, lock]) => lock)).toEqual([held]);
      expect([tenure.isHeld, tenure.isDeparting, release.resumable]).toEqual([true, false, true]);
      answer.open();
      expect(await released).toBe('released');
    });

    it('is passed on by a command, whose outcome is that of the release', async () => {
      const { handOff, release, wait, released, answer, backend } = await leaving({}, 0);
      backend.disturb(async () => undefined, 'transfer');
      expect(handOff.recall(release, wait())).toBe(true);
      answer.open();
      expect(await released).toBe('gone');
    });

    it('leaves its process if the caller that arrives cannot inherit it', async () => {
      const { handOff, release, wait, granted, tenure, answer, released, waiting } = await leaving();
      const next = wait({ waitTime: ms(0) });
      expect(handOff.recall(release, next)).toBe(false);
      expect([release.resumable, granted, tenure.isHeld, waiting.length]).toEqual([false, [], false, 1]);
      expect(handOff.reserve).toBe(0);
      answer.open();
      expect(await released).toBe('released');
    });

    it('twice in a row lets the next acquisition reserve tokens, until no caller follows', async () => {
      const { handOff, release, wait, tenure, held, answer } = await leaving();
      handOff.recall(release, wait());
      expect(handOff.reserve).toBe(0);
      void giveBack(tenure, held);
      expect(handOff.recall(release, wait())).toBe(true);
      expect(handOff.reserve).toBe(64);
      handOff.notFollowed();
      expect(handOff.reserve).toBe(0);
      answer.open();
    });
  });
});
