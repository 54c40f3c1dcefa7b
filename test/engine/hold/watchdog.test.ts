import '../../contract/support/matchers.js';
import type { Timer } from '../../../lib/backends/runtime.js';
import type { Loss, LossReason } from '../../../lib/engine/hold/loss-reasons.js';
import type { Renewable, RenewalList } from '../../../lib/engine/hold/renewal-list.js';
import { type Renewer, Watchdog } from '../../../lib/engine/hold/watchdog.js';
import { LeaseClock, type Moment, validity } from '../../../lib/engine/time/lease-clock.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { latch } from '../../support/section.js';

const LEASE = 30_000;
const THIRD = LEASE / 3;

/** Random numbers at the upper end, and not endlessly many timers. */
class LimitedRuntime extends VirtualRuntime {
  started = 0;
  /** Longer timers fire too early, as those of Node.js do after 24 days. */
  longest = Number.POSITIVE_INFINITY;

  override random = (): number => 0.99;

  override timer(delay: number, callback: () => void, keepAlive?: 'keep-alive'): Timer {
    return ++this.started > 1_000
      ? { cancel: () => {} }
      : super.timer(Math.min(delay, this.longest), callback, keepAlive);
  }
}

class Thing implements Renewable<Thing> {
  validFor: number;
  lost: Error | undefined;
  list: RenewalList<Thing> | undefined;
  earlier: Thing | undefined;
  later: Thing | undefined;

  constructor(
    readonly name: string,
    public confirmed: Moment,
    readonly leaseTime: number,
    readonly fixed: boolean,
  ) {
    this.validFor = leaseTime;
  }

  get leaseEnd(): number {
    return this.confirmed.monotonic + this.validFor;
  }

  confirm(sent: Moment, leaseTime: number): void {
    this.confirmed = sent;
    this.validFor = leaseTime;
  }
}

/** A lost thing, why and when, and the failure that led to it. */
interface SeenLoss {
  readonly name: string;
  readonly reason: LossReason;
  readonly at: number;
  readonly error: Error | undefined;
}

/** A watchdog whose backend answers as the tests say. */
class Kennel implements Renewer<Thing> {
  readonly runtime = new LimitedRuntime();
  readonly clock = new LeaseClock(this.runtime);
  readonly watchdog: Watchdog<Thing>;
  /** When each thing was renewed. */
  readonly renewals: { readonly name: string; readonly at: number }[] = [];
  /** The leases that the requests have set. */
  readonly leaseTimes: number[] = [];
  /** The things whose renewals were confirmed. */
  readonly renewedNames: string[] = [];
  readonly failures: { readonly name: string; readonly remainingTime: number; readonly error: Error }[] = [];
  readonly warnings: string[] = [];
  readonly answers: { readonly name: string; readonly failed: boolean }[] = [];
  heartbeats = 0;
  readonly losses: SeenLoss[] = [];
  answer: () => Promise<boolean> = async () => true;
  left = -1;

  constructor(readonly leaseTime = LEASE) {
    this.watchdog = new Watchdog<Thing>(this.runtime, this.clock, this, leaseTime, () => void this.heartbeats++);
  }

  thing(name: string, confirmed = this.clock.now()): Thing {
    return new Thing(name, confirmed, this.leaseTime, false);
  }

  /** Guards a thing whose acquisition was sent at `confirmed`. */
  guard(name: string, confirmed?: Moment): Thing {
    const thing = this.thing(name, confirmed);
    this.watchdog.guard(thing, this.clock.now());
    return thing;
  }

  guardFixed(name: string, leaseTime: number): Thing {
    const thing = new Thing(name, this.clock.now(), leaseTime, true);
    this.watchdog.guard(thing, thing.confirmed);
    return thing;
  }

  renew({ name }: Thing, leaseTime: number): Promise<boolean> {
    this.leaseTimes.push(leaseTime);
    this.renewals.push({ name, at: this.runtime.monotonic() });
    return this.answer();
  }

  answered({ name }: Thing, failed: boolean): void {
    this.answers.push({ name, failed });
  }

  remaining = async (): Promise<number | undefined> => this.left;

  renewed({ name }: Thing): void {
    this.renewedNames.push(name);
  }

  failed({ name }: Thing, remainingTime: number, error: Error): void {
    this.failures.push({ name, remainingTime, error });
  }

  warn(message: string): void {
    this.warnings.push(message);
  }

  lost(thing: Thing, { reason, error }: Loss): void {
    thing.lost = new Error(reason);
    this.losses.push({ name: thing.name, reason, at: this.runtime.monotonic(), error });
  }
}

const fail = () => Promise.reject(new Error('refused'));
const silence = () => new Promise<boolean>(() => {});

describe('a lease', () => {
  it('is renewed when a third of it has passed, and not before', async () => {
    const kennel = new Kennel();
    const { runtime, renewals } = kennel;
    kennel.guard('order');
    await runtime.advance(THIRD * 0.9);
    expect(renewals).toEqual([]);
    await runtime.advance(THIRD * 0.1);
    expect(renewals).toHaveLength(1);
    await runtime.advance(THIRD * 0.9);
    expect(renewals).toHaveLength(1);
    await runtime.advance(THIRD * 0.1);
    expect(renewals).toHaveLength(2);
  });

  it('is renewed in time although its acquisition took long', async () => {
    const kennel = new Kennel(300);
    const { runtime, renewals } = kennel;
    const sent = kennel.clock.now();
    await runtime.advance(60);
    kennel.guard('order', sent);
    await runtime.advance(39);
    expect(renewals).toEqual([]);
    await runtime.advance(1);
    expect(renewals).toEqual([{ name: 'order', at: 100 }]);
  });

  it('is renewed in time although its acquisition took long and another lease is renewed later', async () => {
    const kennel = new Kennel(300);
    const { runtime, renewals } = kennel;
    const sent = kennel.clock.now();
    await runtime.advance(50);
    kennel.guard('stock');
    await runtime.advance(10);
    kennel.guard('order', sent);
    await runtime.advance(40);
    expect(renewals).toEqual([{ name: 'order', at: 100 }]);
  });

  it('is renewed in time while the renewal of another one gets no answer', async () => {
    const kennel = new Kennel();
    const { runtime, renewals } = kennel;
    kennel.guard('order');
    await runtime.advance(5_000);
    kennel.guard('stock');
    kennel.answer = silence;
    await runtime.advance(THIRD);
    expect(renewals.map(({ name }) => name)).toEqual(['order', 'stock']);
  });

  it('is renewed soon if the clocks jumped after it was requested', async () => {
    const kennel = new Kennel();
    const { runtime, renewals } = kennel;
    const first = kennel.guard('first');
    await runtime.advance(500);
    const sent = kennel.clock.now();
    runtime.setWallClock(-3_600_000);
    await runtime.advance(600);
    expect(renewals).toEqual([{ name: 'first', at: 1_000 }]);
    kennel.watchdog.drop(first);
    kennel.guard('second', sent);
    await runtime.advance(1_000);
    expect(renewals.map(({ name }) => name)).toEqual(['first', 'second']);
  });

  it('is renewed without delay after a jump of the clocks, however many others there are', async () => {
    const kennel = new Kennel();
    const { runtime, renewals } = kennel;
    for (let i = 0; i < 1_300; i++) kennel.guard(`order:${i}`);
    await runtime.advance(500);
    runtime.setWallClock(-3_600_000);
    await runtime.advance(500);
    await runtime.settle();
    expect(renewals).toHaveLength(1_300);
    expect(renewals.every(({ at }) => at === 1_000)).toBe(true);
  });

  it('is renewed again soon after a failure, although the clocks are compared in between', async () => {
    const kennel = new Kennel();
    const { runtime, renewals } = kennel;
    kennel.guard('order');
    kennel.answer = fail;
    await runtime.advance(THIRD + 1_500);
    expect(renewals).toHaveLength(2);
    expect(renewals[1].at - renewals[0].at).toBeLessThan(1_500);
    expect(renewals[1].at - renewals[0].at).toBeGreaterThan(1_400);
  });

  it('that ends while the backend fails is lost because of the last failure', async () => {
    const kennel = new Kennel();
    const { runtime, losses } = kennel;
    kennel.guard('order');
    kennel.answer = fail;
    await runtime.advance(LEASE);
    expect(losses).toMatchObject([{ name: 'order', reason: 'failed', error: new Error('refused') }]);
    expect(losses[0].at).toBeCloseTo(validity(LEASE), -1);
  });

  it('that ends without an answer is lost because of that, not because of an earlier failure', async () => {
    const kennel = new Kennel();
    const { runtime, losses } = kennel;
    kennel.guard('order');
    kennel.answer = fail;
    await runtime.advance(THIRD + 100);
    kennel.answer = async () => true;
    await runtime.advance(2_000);
    kennel.answer = silence;
    await runtime.advance(2 * LEASE);
    expect(losses).toMatchObject([{ name: 'order', reason: 'unanswered', error: undefined }]);
  });

  it('is still renewed when the watchdog is told to stop if it is idle', async () => {
    const kennel = new Kennel();
    const { runtime, renewals, watchdog } = kennel;
    const thing = kennel.guard('order');
    watchdog.stopIfIdle();
    await runtime.advance(THIRD);
    expect(renewals).toHaveLength(1);
    watchdog.drop(thing);
    watchdog.stopIfIdle();
    expect(runtime.timers).toBe(0);
  });

  it('is not renewed any more once the watchdog is closed', async () => {
    const kennel = new Kennel();
    const { runtime, renewals, watchdog } = kennel;
    kennel.guard('order');
    kennel.guardFixed('stock', 5_000);
    watchdog.close();
    kennel.guard('late');
    expect(runtime.timers).toBe(0);
    await runtime.advance(LEASE);
    expect(renewals).toEqual([]);
  });

  it('is not counted as confirmed before the answer, after the clock was set back at its beginning', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    runtime.setWallClock(-3_600_000);
    expect(watchdog.judge(thing)).toBe('unsure');
    const confirmed = watchdog.confirmNow(thing);
    expect(watchdog.judge(thing)).toBe('unsure');
    await confirmed;
    expect(watchdog.judge(thing)).toBe('held');
  });
});

describe('a fixed lease', () => {
  it('is lost at its end, and needs one timer until then', async () => {
    const kennel = new Kennel();
    const { runtime, losses, renewals } = kennel;
    kennel.guardFixed('order', 60_000);
    const { started } = runtime;
    await runtime.advance(59_000);
    expect(losses).toEqual([]);
    await runtime.advance(1_000);
    expect(losses).toMatchObject([{ name: 'order', reason: 'ended' }]);
    expect(renewals).toEqual([]);
    // One heartbeat a second.
    expect(runtime.started - started).toBeLessThan(65);
  });

  it('is lost by the timer that fires exactly at its end', async () => {
    const kennel = new Kennel();
    const { runtime, losses } = kennel;
    kennel.guardFixed('order', 1_000);
    const { started } = runtime;
    await runtime.advance(1_100);
    expect(losses).toEqual([{ name: 'order', reason: 'ended', at: validity(1_000), error: undefined }]);
    expect(runtime.started - started).toBeLessThan(5);
  });

  it('is not lost before its end, even if it is longer than the longest timer', async () => {
    const kennel = new Kennel();
    const { runtime, losses } = kennel;
    runtime.longest = 25_000;
    kennel.guardFixed('order', 60_000);
    await runtime.advance(59_000);
    expect(losses).toEqual([]);
    await runtime.advance(1_000);
    expect(losses).toMatchObject([{ name: 'order', reason: 'ended' }]);
  });

  it.each([
    ['the backend says, if that is sooner', 5_000, 5_000],
    ['it was known to end, if the backend says that it ends later', 100_000, 19_000],
    ['it was known to end, if it has no end in the backend', -1, 19_000],
  ])('that is confirmed ends when %s', async (_, left, expected) => {
    const kennel = new Kennel();
    const { runtime, watchdog, losses } = kennel;
    await runtime.advance(500);
    const thing = kennel.guardFixed('order', 20_000);
    await runtime.advance(1_000);
    kennel.left = left;
    await watchdog.confirmNow(thing);
    expect(thing.leaseEnd).toBe(1_500 + expected);
    await runtime.advance(expected * 0.9);
    expect(losses).toEqual([]);
    await runtime.advance(expected * 0.1);
    expect(losses).toMatchObject([{ reason: 'ended' }]);
  });
});

describe('a lease that is renewed', () => {
  it('is reported as such, and as failed with the time that is left', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    kennel.guard('order');
    await runtime.advance(THIRD);
    expect(kennel.renewedNames).toEqual(['order']);
    kennel.answer = fail;
    await runtime.advance(THIRD);
    expect(kennel.renewedNames).toEqual(['order']);
    expect(kennel.failures).toEqual([{ name: 'order', remainingTime: 19_698, error: new Error('refused') }]);
    watchdog.close();
  });

  it('is lost as soon as the backend says that it is gone, and not renewed any more', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    kennel.answer = async () => false;
    await runtime.advance(2 * LEASE);
    expect(kennel.losses).toEqual([{ name: 'order', reason: 'gone', at: THIRD, error: undefined }]);
    expect(kennel.renewals).toHaveLength(1);
    expect(kennel.renewedNames).toEqual([]);
    expect(watchdog.guards(thing)).toBe(false);
    expect(runtime.timers).toBe(0);
  });

  it('is renewed early together with another one, but not by more than a sixtieth of the lease', async () => {
    const kennel = new Kennel();
    const { runtime } = kennel;
    kennel.guard('a');
    await runtime.advance(500);
    kennel.guard('b');
    await runtime.advance(1);
    kennel.guard('c');
    await runtime.advance(THIRD - 501);
    expect(kennel.renewals.map(({ name }) => name)).toEqual(['a', 'b']);
    await runtime.advance(501);
    expect(kennel.renewals.slice(2)).toEqual([{ name: 'c', at: THIRD + 501 }]);
  });

  it('is not renewed early after so many others that the event loop needs a turn', async () => {
    const kennel = new Kennel();
    const { runtime } = kennel;
    for (let i = 0; i < 512; i++) kennel.guard(`order:${i}`);
    await runtime.advance(400);
    kennel.guard('late');
    await runtime.advance(THIRD - 400);
    expect(kennel.renewals).toHaveLength(512);
    await runtime.advance(400);
    expect(kennel.renewals.slice(512)).toEqual([{ name: 'late', at: THIRD + 400 }]);
  });

  /** 600 leases end at once, before any of them is renewed. Returns how many were lost before each turn. */
  const losses = async (kennel: Kennel) => {
    const { runtime } = kennel;
    const sent = kennel.clock.now();
    await runtime.advance(20_000);
    const turn = runtime.nextTurn.bind(runtime);
    const before: number[] = [];
    runtime.nextTurn = (callback) => {
      before.push(kennel.losses.length);
      turn(callback);
    };
    for (let i = 0; i < 600; i++) kennel.guard(`order:${i}`, sent);
    runtime.block(validity(LEASE) - 20_000);
    await runtime.advance(0);
    return before;
  };

  it('is lost, not renewed, if it has ended by then', async () => {
    const kennel = new Kennel();
    await losses(kennel);
    expect(kennel.renewals).toEqual([]);
    expect(kennel.losses).toHaveLength(600);
    expect(kennel.runtime.timers).toBe(0);
  });

  it('lets the event loop have a turn after 512 that have ended', async () => {
    expect(await losses(new Kennel())).toEqual([512]);
  });

  it('is lost at its end also during the pause after a failure', async () => {
    const kennel = new Kennel();
    const { runtime } = kennel;
    // The last failure comes 1,108 ms before the end, and the next try would come 322 ms after it.
    runtime.random = () => 0.93;
    kennel.guard('order');
    kennel.answer = fail;
    await runtime.advance(LEASE + 1_000);
    expect(kennel.losses).toMatchObject([{ reason: 'failed', at: validity(LEASE) }]);
  });

  it('is renewed in time if it is guarded while only a fixed lease was', async () => {
    const kennel = new Kennel(900);
    const { runtime } = kennel;
    kennel.guardFixed('stock', 60_000);
    await runtime.advance(10);
    kennel.guard('order');
    await runtime.advance(300);
    expect(kennel.renewals).toEqual([{ name: 'order', at: 300 }]);
  });

  it('lets the event loop have a turn after 512 others that are renewed', async () => {
    const kennel = new Kennel();
    const { runtime } = kennel;
    const turn = runtime.nextTurn.bind(runtime);
    const before: number[] = [];
    runtime.nextTurn = (callback) => {
      before.push(kennel.renewals.length);
      turn(callback);
    };
    for (let i = 0; i < 1_100; i++) kennel.guard(`order:${i}`);
    await runtime.advance(THIRD);
    expect(before).toEqual([512, 1_024]);
    expect(kennel.renewals).toHaveLength(1_100);
  });

  it('is not renewed after the watchdog was closed while others were renewed in turns', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const turn = runtime.nextTurn.bind(runtime);
    runtime.nextTurn = (callback) => {
      watchdog.close();
      turn(callback);
    };
    for (let i = 0; i < 600; i++) kennel.guard(`order:${i}`);
    await runtime.advance(2 * LEASE);
    expect(kennel.renewals).toHaveLength(512);
    expect(kennel.losses).toEqual([]);
  });

  it('is renewed soon after a late answer, by which it was due again', async () => {
    const kennel = new Kennel(300);
    const { runtime } = kennel;
    kennel.guard('order');
    const late = latch();
    kennel.answer = () => late.promise.then(() => true);
    await runtime.advance(250);
    late.open();
    await runtime.advance(1);
    expect(kennel.renewals.map(({ at }) => at)).toEqual([100, 250]);
  });

  it('is lost exactly at its end if no renewal is answered', async () => {
    const kennel = new Kennel();
    const { runtime } = kennel;
    kennel.guard('order');
    kennel.answer = silence;
    await runtime.advance(LEASE);
    expect(kennel.losses).toMatchObject([{ reason: 'unanswered', at: validity(LEASE) }]);
  });

  it('is lost, not retried, if the failure comes at its end', async () => {
    const kennel = new Kennel();
    const { runtime } = kennel;
    kennel.guard('order');
    const late = latch();
    kennel.answer = () => late.promise.then(fail);
    await runtime.advance(29_600);
    runtime.block(98);
    late.open();
    await runtime.settle();
    expect(kennel.losses).toMatchObject([{ reason: 'failed', at: validity(LEASE), error: new Error('refused') }]);
    expect(kennel.failures).toEqual([]);
  });

  it.each(['dropped', 'closed'])('does not fail after it was %s', async (how) => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const [thing] = [kennel.guard('order'), kennel.guard('stock')];
    const late = latch();
    kennel.answer = () => late.promise.then(fail);
    await runtime.advance(THIRD);
    if (how === 'dropped') watchdog.drop(thing);
    else watchdog.close();
    late.open();
    await runtime.advance(5_000);
    expect(kennel.failures.map(({ name }) => name)).not.toContain('order');
    expect(kennel.renewals.slice(2).map(({ name }) => name)).not.toContain('order');
    expect(kennel.failures.length > 0).toBe(how === 'dropped');
    watchdog.close();
  });

  it('that is dropped while it is renewed is neither confirmed nor lost', async () => {
    for (const isHeld of [true, false]) {
      const kennel = new Kennel();
      const { runtime, watchdog } = kennel;
      const thing = kennel.guard('order');
      const late = latch();
      kennel.answer = () => late.promise.then(() => isHeld);
      await runtime.advance(THIRD);
      watchdog.drop(thing);
      late.open();
      await runtime.advance(LEASE);
      expect([kennel.renewedNames, kennel.losses]).toEqual([[], []]);
      expect(kennel.renewals).toHaveLength(1);
    }
  });

  it.each([
    [200, 0, 10],
    [200, 0.99, 29.8],
    [3_000, 0, 75],
    [3_000, 0.99, 223.5],
    [30_000, 0, 500],
    [30_000, 0.99, 1_490],
  ])(
    'of %d ms is retried after a pause of a twentieth, within 20 ms and a second, with jitter (%d): %d ms',
    async (leaseTime, random, pause) => {
      const kennel = new Kennel(leaseTime);
      const { runtime } = kennel;
      runtime.random = () => random;
      kennel.guard('order');
      kennel.answer = fail;
      await runtime.advance(leaseTime / 3);
      kennel.answer = async () => true;
      await runtime.advance(leaseTime / 3 - 1);
      const [first, second] = kennel.renewals.map(({ at }) => at);
      expect(second - first).toBeCloseTo(pause);
      // The next failure is retried after a pause as well.
      kennel.answer = fail;
      await runtime.advance(pause + 2);
      kennel.answer = async () => true;
      await runtime.advance(pause + 1);
      const [third, fourth] = kennel.renewals.slice(2).map(({ at }) => at);
      expect(fourth - third).toBeCloseTo(pause);
    },
  );

  it('is retried together with those that fail during the pause', async () => {
    const kennel = new Kennel(3_000);
    const { runtime } = kennel;
    kennel.guard('order');
    await runtime.advance(100);
    kennel.guard('stock');
    kennel.answer = fail;
    await runtime.advance(1_200);
    expect(kennel.renewals).toEqual([
      { name: 'order', at: 1_000 },
      { name: 'stock', at: 1_100 },
      { name: 'order', at: 1_223.5 },
      { name: 'stock', at: 1_223.5 },
    ]);
  });

  it('is retried after its own pause, if an earlier failure concerned none that is still held', async () => {
    const kennel = new Kennel(3_000);
    const { runtime, watchdog } = kennel;
    const order = kennel.guard('order');
    await runtime.advance(100);
    kennel.guard('stock');
    const late = latch();
    kennel.answer = () => late.promise.then(fail);
    await runtime.advance(900);
    watchdog.drop(order);
    late.open();
    kennel.answer = fail;
    await runtime.advance(400);
    expect(kennel.renewals.slice(1)).toEqual([
      { name: 'stock', at: 1_100 },
      { name: 'stock', at: 1_323.5 },
    ]);
  });

  it('is renewed once more, without delay, if the clocks jumped before the answer', async () => {
    const kennel = new Kennel();
    const { runtime } = kennel;
    kennel.guard('order');
    const late = latch();
    kennel.answer = () => late.promise.then(() => true);
    await runtime.advance(THIRD + 100);
    runtime.setWallClock(-3_600_000);
    await runtime.advance(1_200);
    late.open();
    await runtime.advance(1);
    expect(kennel.renewals.map(({ at }) => at)).toEqual([THIRD, THIRD + 1_300]);
  });

  it('can be renewed at once, and once', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const [order] = [kennel.guard('order'), kennel.guard('stock')];
    await runtime.advance(700);
    watchdog.renewNow(order);
    await runtime.advance(0);
    expect(kennel.renewals).toEqual([{ name: 'order', at: 700 }]);
    await runtime.advance(THIRD - 701);
    expect(kennel.renewals.filter(({ name }) => name === 'order')).toHaveLength(1);
  });
});

describe('leases that can share a request', () => {
  it('are renewed early together with the one that is due, and then rest as long as it does', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    kennel.guard('a');
    await runtime.advance(THIRD / 2);
    const b = kennel.guard('b');
    const renew = kennel.renew.bind(kennel);
    const isEarly: boolean[] = [];
    kennel.renew = (thing, leaseTime) => {
      isEarly.push(watchdog.renewEarly(b));
      return renew(thing, leaseTime);
    };
    await runtime.advance(THIRD / 2);
    expect(kennel.renewals).toEqual(['a', 'b'].map((name) => ({ name, at: THIRD })));
    expect(isEarly).toEqual([true, false]);
    await runtime.advance(THIRD);
    expect(kennel.renewals.slice(2)).toEqual(['a', 'b'].map((name) => ({ name, at: 2 * THIRD })));
  });
});

describe('a lease that is extended', () => {
  it('ends that long from now, and is renewed again when two thirds of a lease are left', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    await runtime.advance(5_000);
    await watchdog.extend(thing, 60_000);
    expect(thing.leaseEnd).toBe(65_000);
    expect(kennel.leaseTimes).toEqual([60_000]);
    const renewedAt = 5_000 + validity(60_000) - (LEASE * 2) / 3;
    await runtime.advance(100_000);
    expect(kennel.leaseTimes.slice(1, 3)).toEqual([LEASE, LEASE]);
    expect(kennel.renewals[1].at).toBeCloseTo(renewedAt);
    const next = kennel.renewals[2].at - kennel.renewals[1].at;
    expect(next).toBeGreaterThanOrEqual(THIRD - LEASE / 60);
    expect(next).toBeLessThanOrEqual(THIRD);
  });

  it('does not become shorter than a renewal makes it', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    await runtime.advance(5_000);
    await watchdog.extend(thing, 1_000);
    expect([kennel.leaseTimes, thing.leaseEnd]).toEqual([[LEASE], 35_000]);
    await runtime.advance(THIRD - 1);
    expect(kennel.renewals).toHaveLength(1);
    await runtime.advance(1);
    expect(kennel.renewals).toHaveLength(2);
  });

  it('becomes shorter if it is fixed: from when that is requested, not from the answer on', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guardFixed('order', 60_000);
    kennel.answer = silence;
    await runtime.advance(1_000);
    void watchdog.extend(thing, 5_000);
    expect([kennel.leaseTimes, thing.leaseEnd]).toEqual([[5_000], 6_000]);
    void watchdog.extend(thing, 90_000);
    expect(thing.leaseEnd).toBe(6_000);
    await runtime.advance(5_000);
    expect(kennel.losses).toMatchObject([{ reason: 'ended', at: 1_000 + validity(5_000) }]);
  });

  it('becomes shorter if it is fixed, also by less than what is uncertain of it', async () => {
    const kennel = new Kennel();
    const thing = kennel.guardFixed('order', 60_000);
    kennel.answer = silence;
    void kennel.watchdog.extend(thing, 59_500);
    expect(thing.leaseEnd).toBe(59_500);
  });

  it('is lost exactly at its end if a renewal that began late is not answered', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    await runtime.advance(700); // so that the delayed timer fires before the renewal that is due
    await watchdog.extend(thing, 60_000);
    await runtime.advance(38_800);
    kennel.answer = silence;
    runtime.block(20_550);
    await runtime.advance(2_000);
    expect(kennel.losses).toMatchObject([{ at: 700 + validity(60_000) }]);
  });

  it('is renewed like any other when the extension has run out, also after the machine was suspended', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    await watchdog.extend(thing, 60_000);
    await runtime.advance(41_000);
    expect(kennel.renewals).toHaveLength(2);
    runtime.suspend(900);
    await runtime.advance(9_500);
    expect(kennel.renewals).toHaveLength(3);
    watchdog.drop(thing);
    await runtime.advance(2_000);
    expect(runtime.timers).toBe(0);
  });

  it('twice for the same time lasts that long from the first answer on', async () => {
    const kennel = new Kennel();
    const { watchdog } = kennel;
    const thing = kennel.guard('order');
    const first = watchdog.extend(thing, 60_000);
    kennel.answer = silence;
    void watchdog.extend(thing, 60_000);
    await first;
    expect(thing.leaseEnd).toBe(60_000);
  });

  it.each([true, false])(
    'is not extended if it was lost before the answer, while its body runs on (%s)',
    async (isHeld) => {
      const kennel = new Kennel();
      const { runtime, watchdog } = kennel;
      const thing = kennel.guardFixed('order', 5_000);
      const late = latch();
      kennel.answer = () => late.promise.then(() => isHeld);
      const extended = watchdog.extend(thing, 60_000);
      runtime.block(5_000);
      expect(watchdog.judge(thing)).toBe('lost');
      watchdog.guard(thing, kennel.clock.now());
      late.open();
      await extended;
      expect([thing.leaseEnd, kennel.losses.length]).toEqual([5_000, 1]);
      watchdog.close();
    },
  );

  it('is not extended for something that is not guarded', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guardFixed('order', 60_000);
    watchdog.drop(thing);
    const asked = watchdog.extend(thing, 5_000);
    expect(thing.leaseEnd).toBe(60_000);
    await asked;
    expect(thing.leaseEnd).toBe(60_000);
    expect(runtime.timers).toBeLessThanOrEqual(1);
    kennel.answer = async () => false;
    await watchdog.extend(thing, 5_000);
    expect(kennel.losses).toEqual([]);
  });

  it('is lost if it is gone', async () => {
    const kennel = new Kennel();
    const thing = kennel.guard('order');
    kennel.answer = async () => false;
    await kennel.watchdog.extend(thing, 60_000);
    await kennel.watchdog.extend(thing, 60_000);
    expect(kennel.losses).toMatchObject([{ reason: 'gone-at-extension' }]);
  });

  it('is as long as before if that fails, and renewed as before', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    kennel.answer = fail;
    await expect(watchdog.extend(thing, 60_000)).rejects.toThrow('refused');
    expect(thing.leaseEnd).toBe(LEASE);
    kennel.answer = async () => true;
    await runtime.advance(THIRD);
    expect(kennel.leaseTimes).toEqual([60_000, LEASE]);
  });

  it('is not cut short by a renewal that overtakes the extension', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    kennel.guard('stock');
    await runtime.advance(9_400);
    const late = latch();
    kennel.answer = () => late.promise.then(() => true);
    const extended = watchdog.extend(thing, 60_000);
    kennel.answer = async () => true;
    await runtime.advance(600);
    expect(kennel.leaseTimes).toEqual([60_000, 60_000, LEASE]);
    late.open();
    await extended;
    await runtime.advance(THIRD);
    expect(kennel.leaseTimes.slice(3)).toEqual([LEASE]);
  });

  it.each([
    ['the longer one', 0, [90_000, 60_000]],
    ['the shorter one', 0, [60_000, 90_000]],
    ['the longer one', 1, [60_000, 90_000]],
    ['one of two', 0, [60_000, 60_000]],
  ])('several times is renewed for the longest that is unanswered: after %s was answered', async (_, first, leases) => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    await runtime.advance(9_500);
    const answers = leases.map(() => latch());
    const extended = leases.map((lease, index) => {
      kennel.answer = () => answers[index].promise.then(() => true);
      return watchdog.extend(thing, lease);
    });
    answers[first].open();
    await extended[first];
    kennel.answer = async () => true;
    watchdog.renewNow(thing);
    await runtime.advance(0);
    expect(kennel.leaseTimes).toEqual([...leases, leases[1 - first]]);
    answers[1 - first].open();
    await extended[1 - first];
    watchdog.renewNow(thing);
    await runtime.advance(0);
    expect(kennel.leaseTimes.slice(3)).toEqual([LEASE]);
    watchdog.close();
  });

  /** A lease that is extended to 60 s and to 90 s. The test opens the answers. */
  const extendedTwice = () => {
    const kennel = new Kennel();
    const { watchdog } = kennel;
    const thing = kennel.guard('order');
    const answers = [latch(), latch()];
    const [shorter, longer] = [60_000, 90_000].map((lease, index) => {
      kennel.answer = () => answers[index].promise.then(() => true);
      return watchdog.extend(thing, lease);
    });
    return { thing, answers, shorter, longer };
  };

  it('several times lasts as long as the shortest that may be executed last', async () => {
    const { thing, answers, shorter, longer } = extendedTwice();
    answers[1].open();
    await longer;
    expect(thing.leaseEnd).toBe(LEASE);
    answers[0].open();
    await shorter;
    expect(thing.leaseEnd).toBe(60_000);
  });

  it('several times lasts longer with each answer, if the shorter one comes first', async () => {
    const { thing, answers, shorter, longer } = extendedTwice();
    answers[0].open();
    await shorter;
    expect(thing.leaseEnd).toBe(60_000);
    answers[1].open();
    await longer;
    expect(thing.leaseEnd).toBe(90_000);
  });
});

describe('a lease whose holder asks whether it is held', () => {
  it('is held until its end, and lost from then on, even if no timer has fired', () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    runtime.block(9_000);
    expect(watchdog.judge(thing)).toBe('held');
    thing.confirmed = kennel.clock.now();
    runtime.block(validity(LEASE) - 1);
    expect([watchdog.judge(thing), kennel.losses]).toEqual(['held', []]);
    runtime.block(1);
    expect([watchdog.judge(thing), watchdog.judge(thing)]).toEqual(['lost', 'lost']);
    expect(kennel.losses).toHaveLength(1);
    expect(watchdog.guards(thing)).toBe(false);
  });

  it('is renewed to find out, for as long as it was extended', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const [order, stock] = [kennel.guard('order'), kennel.guard('stock')];
    await watchdog.extend(stock, 60_000);
    await runtime.advance(1_000);
    await watchdog.confirmNow(order);
    await watchdog.confirmNow(stock);
    expect(kennel.leaseTimes).toEqual([60_000, LEASE, 60_000]);
    expect([order.leaseEnd, stock.leaseEnd]).toEqual([1_000 + LEASE, 61_000]);
    kennel.answer = async () => false;
    await watchdog.confirmNow(order);
    expect(kennel.losses).toMatchObject([{ name: 'order', reason: 'gone-at-confirmation' }]);
  });

  it('is not asked about if it was given back, or is fixed and was left to lapse', async () => {
    const kennel = new Kennel();
    const { watchdog } = kennel;
    const [order, fixed] = [kennel.guard('order'), kennel.guardFixed('stock', 5_000)];
    let lookups = 0;
    kennel.remaining = async () => {
      lookups++;
      return undefined;
    };
    for (const thing of [order, fixed]) {
      watchdog.drop(thing);
      await watchdog.confirmNow(thing);
    }
    expect([kennel.renewals, kennel.losses, lookups]).toEqual([[], [], 0]);
  });

  it('is confirmed at once after an outage, if it was confirmed before', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    kennel.guard('before');
    const fixed = kennel.guardFixed('fixed', 60_000);
    await runtime.advance(100);
    const since = runtime.monotonic();
    await runtime.advance(1_000);
    kennel.guard('during');
    kennel.remaining = async () => undefined;
    watchdog.confirmAll(since);
    await runtime.advance(1);
    expect(kennel.renewals).toEqual([{ name: 'before', at: since + 1_000 }]);
    expect([kennel.losses, fixed.lost?.message]).toMatchObject([
      [{ name: 'fixed', reason: 'gone-at-lookup' }],
      'gone-at-lookup',
    ]);
    watchdog.close();
    watchdog.confirmAll(Number.POSITIVE_INFINITY);
    await runtime.advance(1);
    expect(kennel.renewals).toHaveLength(1);
  });

  it('is confirmed at once after an outage, although slow acquisitions are answered meanwhile', async () => {
    const kennel = new Kennel();
    const { watchdog, runtime } = kennel;
    const sent = kennel.clock.now();
    kennel.guard('order');
    await runtime.advance(4_000);
    watchdog.confirmAll(runtime.monotonic());
    for (let i = 0; i < 20; i++) {
      kennel.guard(`late:${i}`, sent);
      await runtime.advance(0.5);
    }
    expect(kennel.renewals[0]).toEqual({ name: 'order', at: sent.monotonic + 4_000 });
    watchdog.close();
  });

  it('needs no confirmation after an outage if nothing is held', () => {
    const { watchdog, runtime } = new Kennel();
    watchdog.confirmAll(runtime.monotonic());
    expect(runtime.timers).toBe(0);
  });

  it('is held on after an outage if it cannot be confirmed', async () => {
    const kennel = new Kennel();
    const fixed = kennel.guardFixed('order', 60_000);
    kennel.remaining = () => Promise.reject(new Error('no answer'));
    kennel.watchdog.confirmAll(kennel.runtime.monotonic());
    await kennel.runtime.advance(1);
    expect([fixed.lost, kennel.losses]).toEqual([undefined, []]);
  });

  it('is lost if it is fixed and nobody holds it', async () => {
    const kennel = new Kennel();
    const thing = kennel.guardFixed('order', 5_000);
    kennel.remaining = async () => undefined;
    await kennel.watchdog.confirmNow(thing);
    expect(kennel.losses).toMatchObject([{ reason: 'gone-at-lookup' }]);
    expect(kennel.renewals).toEqual([]);
  });

  it.each(['lost', 'lost, while its body runs on', 'given back', 'extended'])(
    'is left alone if it is fixed and was %s meanwhile',
    async (how) => {
      const kennel = new Kennel();
      const { runtime, watchdog } = kennel;
      const thing = kennel.guardFixed('order', 5_000);
      const answer = latch();
      kennel.remaining = () => answer.promise.then(() => undefined);
      const confirmed = watchdog.confirmNow(thing);
      await runtime.advance(1);
      const isLost = how.startsWith('lost');
      if (isLost) runtime.block(5_000);
      if (isLost) expect(watchdog.judge(thing)).toBe('lost');
      const runsOn = how.endsWith('runs on');
      if (runsOn) watchdog.guard(thing, kennel.clock.now());
      if (how === 'given back') watchdog.drop(thing);
      if (how === 'extended') await watchdog.extend(thing, 60_000);
      answer.open();
      await confirmed;
      expect(kennel.losses).toHaveLength(isLost ? 1 : 0);
      expect(watchdog.guards(thing)).toBe(runsOn || how === 'extended');
      watchdog.close();
    },
  );

  it('is lost at once if it is fixed and the backend says that it ends now', async () => {
    const kennel = new Kennel();
    const thing = kennel.guardFixed('order', 20_000);
    kennel.left = 0;
    await kennel.watchdog.confirmNow(thing);
    await kennel.runtime.advance(0);
    expect(kennel.losses).toMatchObject([{ reason: 'ended', at: 0 }]);
  });

  it('is fixed to what is left when it is asked about, not when the answer comes', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guardFixed('order', 20_000);
    const answer = latch();
    kennel.remaining = () => answer.promise.then(() => 5_000);
    const confirmed = watchdog.confirmNow(thing);
    await runtime.advance(1_000);
    answer.open();
    await confirmed;
    expect(thing.leaseEnd).toBe(5_000);
  });
});

describe('a lease that began long before it is guarded', () => {
  it('is renewed when a third of it has passed since its beginning, and only then', async () => {
    const kennel = new Kennel();
    const { runtime } = kennel;
    await runtime.advance(7_000);
    kennel.guard('order', { monotonic: 2_000, wall: kennel.clock.now().wall - 5_000 });
    await runtime.advance(4_999);
    expect(kennel.renewals).toEqual([]);
    await runtime.advance(1_001);
    expect(kennel.renewals).toHaveLength(1);
    expect(kennel.renewals[0].at).toBeWithin(2_000 + THIRD - 1_000, 2_000 + THIRD + 1_000);
  });
});

describe('the heartbeat', () => {
  it.each([
    [30_000, 10],
    [900, 33],
  ])('comes once a second, or three times in a lease of %d ms, while something is held', async (leaseTime, count) => {
    const kennel = new Kennel(leaseTime);
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    await runtime.advance(10_000);
    expect(kennel.heartbeats).toBe(count);
    watchdog.drop(thing);
    await runtime.advance(10_000);
    expect(kennel.heartbeats).toBe(count);
    expect(runtime.timers).toBe(0);
  });

  it('comes for a fixed lease as well', async () => {
    const kennel = new Kennel();
    kennel.guardFixed('order', 60_000);
    await kennel.runtime.advance(5_000);
    expect(kennel.heartbeats).toBe(5);
  });

  it('stops at once if it is told to while nothing is held, and begins with the next lease', async () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    watchdog.drop(kennel.guard('order'));
    expect(runtime.timers).toBe(1);
    watchdog.stopIfIdle();
    expect(runtime.timers).toBe(0);
    // The time in which nothing is held says nothing about clocks.
    runtime.setWallClock(-3_600_000);
    await runtime.advance(5_000);
    kennel.guard('stock');
    await runtime.advance(2_000);
    expect([kennel.heartbeats, kennel.renewals]).toEqual([2, []]);
  });

  it('resets the timer of a fixed lease if the machine was suspended, also for a moment', async () => {
    const kennel = new Kennel();
    const { runtime } = kennel;
    kennel.guardFixed('order', 60_000);
    await runtime.advance(20_000);
    runtime.suspend(900);
    await runtime.advance(40_000);
    expect(kennel.losses).toMatchObject([{ reason: 'ended', at: validity(60_000) - 900 }]);
  });

  it('notices a fixed lease that has ended meanwhile, even at that moment', async () => {
    const kennel = new Kennel();
    const { runtime } = kennel;
    kennel.guardFixed('order', 10_000);
    await runtime.advance(5_000);
    runtime.suspend(validity(10_000) - 6_000);
    await runtime.advance(1_000);
    expect(kennel.losses).toMatchObject([{ reason: 'ended-unnoticed', at: 6_000 }]);
    expect(runtime.timers).toBe(0);
  });

  it('warns that the event loop was blocked, if something was held', async () => {
    for (const guard of ['order', 'fixed', undefined]) {
      const kennel = new Kennel();
      const { runtime, watchdog } = kennel;
      const thing = guard === 'fixed' ? kennel.guardFixed(guard, 60_000) : kennel.guard('order');
      if (guard === undefined) watchdog.drop(thing);
      runtime.block(12_000);
      await runtime.advance(0);
      expect(kennel.warnings).toHaveLength(guard === undefined ? 0 : 1);
      if (guard !== undefined) expect(kennel.warnings[0]).toContain('blocked for 11.0 s');
      watchdog.close();
    }
  });

  it('names a blocked event loop as the reason of a loss before it has come', () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    runtime.block(40_000);
    expect(watchdog.judge(thing)).toBe('lost');
    expect(kennel.losses).toMatchObject([{ reason: 'blocked' }]);
    expect(watchdog.explain(thing, 'gone')).toEqual({ reason: 'blocked', blockedFor: 39_000 });
  });

  it('gives the reason that the backend names, as long as the lease lasts by the clock', () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    const thing = kennel.guard('order');
    runtime.block(validity(LEASE) - 1);
    const error = new Error('refused');
    expect(watchdog.explain(thing, 'gone-at-release', error)).toEqual({ reason: 'gone-at-release', error });
    runtime.block(1);
    expect(watchdog.explain(thing, 'gone-at-release').reason).toBe('blocked');
  });

  it('is not expected while nothing is held', () => {
    const kennel = new Kennel();
    const { runtime, watchdog } = kennel;
    runtime.block(40_000);
    watchdog.noticeBlock(kennel.clock.now());
    expect(kennel.warnings).toEqual([]);
  });
});
