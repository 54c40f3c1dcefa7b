import type { Timer } from '../../../lib/backends/runtime.js';
import { LeaseClock, type Moment, validity } from '../../../lib/engine/hold/lease-clock.js';
import type { Loss, LossReason } from '../../../lib/engine/hold/loss-reasons.js';
import { type Renewable, RenewalList, type Renewer, Watchdog } from '../../../lib/engine/hold/watchdog.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

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
  readonly losses: SeenLoss[] = [];
  answer: () => Promise<boolean> = async () => true;
  left = -1;

  constructor(readonly leaseTime = LEASE) {
    this.watchdog = new Watchdog<Thing>(this.runtime, this.clock, this, leaseTime, () => {});
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

  async renew(things: readonly Thing[]): Promise<readonly boolean[]> {
    for (const { name } of things) this.renewals.push({ name, at: this.runtime.monotonic() });
    const isHeld = await this.answer();
    return things.map(() => isHeld);
  }

  remaining = async (): Promise<number> => this.left;

  renewed(): void {}

  failed(): void {}

  warn(): void {}

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
    const thing = kennel.guardFixed('order', 20_000);
    await runtime.advance(1_000);
    kennel.left = left;
    await watchdog.confirmNow(thing);
    expect(thing.leaseEnd).toBe(1_000 + expected);
    await runtime.advance(expected * 0.9);
    expect(losses).toEqual([]);
    await runtime.advance(expected * 0.1);
    expect(losses).toMatchObject([{ reason: 'ended' }]);
  });
});

describe('the list of leases', () => {
  const thing = (name: string, end: number) => new Thing(name, { monotonic: 0, wall: 0 }, end, false);
  const named = (list: RenewalList<Thing>) => {
    const names: string[] = [];
    for (let { first: thing } = list; thing !== undefined; thing = thing.later) {
      names.push(thing.name);
      expect(names.length).toBeLessThan(20);
    }
    return names.join('');
  };

  it('is in the order in which they end, and in the order of arrival if they end together', () => {
    const list = new RenewalList<Thing>();
    for (const [name, end] of [
      ['c', 30],
      ['a', 10],
      ['e', 50],
      ['b', 20],
      ['d', 30],
    ] as const)
      list.push(thing(name, end));
    expect(named(list)).toBe('abcde');
  });

  it.each([
    ['a', 'bcd'],
    ['b', 'acd'],
    ['d', 'abc'],
    ['ab', 'cd'],
    ['cd', 'ab'],
    ['abcd', ''],
  ])('from which %s are removed keeps the others, and takes new ones', (leaving, others) => {
    const list = new RenewalList<Thing>();
    const things = [...'abcd'].map((name, i) => thing(name, i));
    for (const one of things) list.push(one);
    for (const one of things) if (leaving.includes(one.name)) list.remove(one);
    for (const one of things) expect(one.list === list).toBe(others.includes(one.name));
    expect(named(list)).toBe(others);
    list.push(thing('z', 100));
    list.push(thing('y', -100));
    expect(named(list)).toBe(`y${others}z`);
  });

  it('can be moved into another one', () => {
    const list = new RenewalList<Thing>();
    const other = new RenewalList<Thing>();
    list.push(thing('a', 10));
    list.push(thing('c', 30));
    other.push(thing('b', 20));
    list.moveTo(other);
    expect(named(list)).toBe('');
    expect(named(other)).toBe('abc');
  });
});
