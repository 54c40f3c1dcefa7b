import type { Moment } from '../../lib/backends/runtime.js';
import { HeldLock, type LockKeeper } from '../../lib/engine/hold/held-lock.js';
import type { KeptLease, Standby } from '../../lib/engine/hold/standby.js';
import { Watchdog } from '../../lib/engine/hold/watchdog.js';
import { LeaseClock } from '../../lib/engine/time/lease-clock.js';
import { ThreadStandby } from '../../lib/standby/loop-side.js';
import { BEAT, BEAT_WALL, SAID, SlotChunk } from '../../lib/standby/slots.js';
import { VirtualRuntime } from '../support/runtime/virtual-runtime.js';

const LEASE = 30_000;
const CLIENT = '2f0c';

/** A watchdog whose standby has no thread. The test does what the thread does. */
function open() {
  const runtime = new VirtualRuntime();
  const standby = new ThreadStandby({
    backend: { description: 'redis' },
    runtime,
    clientId: CLIENT,
    watchdogTimeout: LEASE,
    commandTimeout: 2_000,
    keepWhileBlocked: 120_000,
    servers: () => ({ connections: [], isQuorum: false }),
  });
  const lost: string[] = [];
  const warnings: string[] = [];
  const requests: { readonly leaseTime: number; answer(isHeld: boolean): void }[] = [];
  const renewer = {
    renew: (_: HeldLock, leaseTime: number) =>
      new Promise<boolean>((answer) => void requests.push({ leaseTime, answer })),
    renewed: () => {},
    failed: () => {},
    lost: (_: HeldLock, { reason }: { reason: string }) => void lost.push(reason),
    warn: (message: string) => void warnings.push(message),
  };
  const clock = new LeaseClock(runtime);
  const watchdog = new Watchdog<HeldLock>(runtime, clock, renewer, LEASE, () => {}, standby);
  const keeper = { name: 'a', key: 'lock:a' } as LockKeeper;
  let count = 0;
  /** @param age how long ago the lease was asked for */
  const guard = (age = 0) => {
    const now = clock.now();
    const attempt = {
      type: 'reentrant',
      owner: `${CLIENT}:${++count}`,
      leaseTime: LEASE,
      sent: { monotonic: now.monotonic - age, wall: now.wall - age },
      lateCopiesUntil: undefined,
      permits: undefined,
    } as const;
    const held = new HeldLock(keeper, attempt, false, { token: count, reserved: 0 }, 0);
    watchdog.guard(held, clock.now());
    return held;
  };
  const [{ size, width, memory }] = standby.chunks;
  const thread = new SlotChunk(size, width, CLIENT, memory);
  /** The thread has got an answer. @param state as it was when the request was sent */
  const say = (slot: number, said: number | 'gone', state = thread.idleState(slot) as number) => {
    thread.say(slot, state, said);
    Atomics.add(standby.header, SAID, 1);
  };
  /** Time passes, but nothing runs. */
  const block = (time: number) => runtime.block(time);
  return { runtime, standby, watchdog, clock, guard, thread, say, block, lost, warnings, requests };
}

const left = ({ clock }: ReturnType<typeof open>, { confirmed, validFor }: HeldLock) => clock.left(confirmed, validFor);

describe('what the event loop believes after a block', () => {
  it('is what the thread has confirmed, at once', () => {
    const world = open();
    const held = world.guard();
    const begun = world.runtime.monotonic();
    world.block(70_000);
    expect(left(world, held)).toBeLessThan(0);
    world.say(held.slot, begun + 60_000);
    expect(left(world, held)).toBeCloseTo(LEASE * 0.99 - 2 - 10_000, 0);
    expect(world.watchdog.judge(held)).toBe('held');
    expect(world.lost).toEqual([]);
  });

  it('is that a lock is lost which was gone', () => {
    const world = open();
    const held = world.guard();
    world.block(12_000);
    world.say(held.slot, 'gone');
    expect(left(world, held)).toBeLessThan(0);
    expect(world.watchdog.judge(held)).toBe('lost');
    expect(world.lost).toEqual(['gone']);
  });

  it('is never earlier than what it knew', () => {
    const world = open();
    const held = world.guard();
    const begun = world.runtime.monotonic();
    world.say(held.slot, begun - 5_000);
    expect(left(world, held)).toBeCloseTo(LEASE * 0.99 - 2, 0);
  });

  it('is not changed by a late answer about the lock before', () => {
    const world = open();
    const first = world.guard();
    const { slot } = first;
    const state = world.thread.idleState(slot);
    world.watchdog.drop(first);
    const next = world.guard();
    expect(next.slot).toBe(slot);
    world.say(slot, 'gone', state);
    world.say(slot, world.runtime.monotonic() + 1e6, state);
    expect(left(world, next)).toBeCloseTo(LEASE * 0.99 - 2, 0);
  });

  it('stays what it was about a lock that was given back', () => {
    const world = open();
    const held = world.guard();
    const begun = world.runtime.monotonic();
    world.block(40_000);
    world.say(held.slot, begun + 30_000);
    world.watchdog.drop(held);
    expect(held.confirmed.monotonic).toBeCloseTo(begun + 30_000, 0);
  });

  it('is not that a machine which was suspended after the renewal still holds the lock', () => {
    const world = open();
    const held = world.guard();
    const begun = world.runtime.monotonic();
    world.say(held.slot, begun + 10_000);
    world.block(11_000);
    world.runtime.suspend(60_000);
    expect(left(world, held)).toBeLessThan(0);
  });

  it('leaves an extension as long as it was', async () => {
    const world = open();
    const held = world.guard();
    const extended = world.watchdog.extend(held, 100_000);
    world.requests[0].answer(true);
    await extended;
    const begun = world.runtime.monotonic();
    world.say(held.slot, begun + 5_000);
    expect(left(world, held)).toBeCloseTo(99_000 - 2, 0);
    world.say(held.slot, begun + 90_000);
    world.block(90_000);
    expect(left(world, held)).toBeGreaterThan(28_000);
    expect(left(world, held)).toBeLessThan(30_000);
    expect(held.validFor).toBe(100_000);
  });

  it('survives a late answer to a renewal of its own', async () => {
    const world = open();
    const held = world.guard();
    await world.runtime.advance(10_000);
    expect(world.requests).toHaveLength(1);
    const begun = world.runtime.monotonic();
    world.block(70_000);
    world.say(held.slot, begun + 60_000);
    world.standby.catchUpAll();
    world.requests[0].answer(true);
    await Promise.resolve();
    await Promise.resolve();
    expect(left(world, held)).toBeGreaterThan(19_000);
    expect(world.lost).toEqual([]);
  });

  it('is confirmed by the loop itself as soon as it runs, in the order in which leases end', async () => {
    const world = open();
    const all = [world.guard(), world.guard(), world.guard()];
    const begun = world.runtime.monotonic();
    world.block(50_000);
    world.say(all[0].slot, begun + 49_000);
    world.say(all[1].slot, begun + 30_000);
    world.say(all[2].slot, begun + 40_000);
    await world.runtime.advance(1);
    expect(world.requests).toHaveLength(3);
    expect(world.warnings).toEqual([expect.stringMatching(/a thread kept 3 .* \(a, a, a\), with 10\.0 s left/)]);
  });
});

describe('what the thread may do', () => {
  const wordsOf = ({ standby }: { standby: ThreadStandby }) => [standby.header[BEAT], standby.header[BEAT_WALL]];

  it('is measured from the last heartbeat, and from each grant, also after an idle hour', async () => {
    const world = open();
    const first = world.guard();
    await world.runtime.advance(1_000);
    expect(wordsOf(world)[0]).toBe(world.runtime.monotonic() | 0);
    world.watchdog.drop(first);
    await world.runtime.advance(3_600_000);
    expect(wordsOf(world)[0]).toBeLessThan(world.runtime.monotonic() - 3_000_000);
    world.guard();
    expect(wordsOf(world)).toEqual([world.runtime.monotonic() | 0, world.runtime.wall() | 0]);
  });

  it('begins at once after a grant that was read late, until the next heartbeat', async () => {
    const world = open();
    const [silence] = wordsOf(world);
    const late = world.guard(25_000);
    expect(wordsOf(world)[0]).toBeLessThanOrEqual(silence - 1_500);
    expect(world.thread.untilDue(late.slot, world.runtime.monotonic())).toBeLessThan(0);
    world.block(5);
    world.guard();
    expect(wordsOf(world)[0]).toBeLessThanOrEqual(silence - 1_500);
    await world.runtime.advance(1_000);
    expect(wordsOf(world)[0]).toBe(world.runtime.monotonic() | 0);
  });

  it('begins when a third of the lease has passed since it was last confirmed', async () => {
    const world = open();
    const held = world.guard();
    const due = () => world.thread.untilDue(held.slot, world.runtime.monotonic());
    expect(due()).toBeCloseTo(10_000, -1);
    await world.runtime.advance(10_000);
    world.requests[0].answer(true);
    await Promise.resolve();
    expect(due()).toBeCloseTo(10_000, -1);
    const extended = world.watchdog.extend(held, 100_000);
    world.requests[1].answer(true);
    await extended;
    expect(due()).toBeCloseTo(80_000, -1);
  });

  it('never concerns a lock that is given back, lost or left to lapse', () => {
    const world = open();
    const held = world.guard();
    const { slot } = held;
    world.watchdog.drop(held);
    expect(world.thread.idleState(slot)).toBeUndefined();
    const lapsing = world.guard();
    world.watchdog.drop(lapsing);
    lapsing.fixed = true;
    world.watchdog.guard(lapsing, world.clock.now());
    expect(lapsing.slot).toBe(-1);
    expect(world.thread.idleState(slot)).toBeUndefined();
  });

  it('ends before the loop makes a lease shorter', async () => {
    const world = open();
    const idle = world.guard();
    expect(world.standby.withdraw(idle)).toBeUndefined();
    const held = world.guard();
    const { slot } = held;
    const state = world.thread.idleState(slot) as number;
    world.thread.begin(slot, state);
    Reflect.set(world.standby, 'thread', {});
    let isWithdrawn = false;
    const withdrawn = world.standby.withdraw(held)?.then(() => {
      isWithdrawn = true;
    });
    await world.runtime.advance(5_000);
    expect(isWithdrawn).toBe(false);
    expect(world.guard().slot).not.toBe(slot);
    world.thread.end(slot, state);
    await world.runtime.advance(10);
    await withdrawn;
    expect(world.thread.idleState(slot)).toBeUndefined();
    expect(world.guard().slot).toBe(slot);
  });

  it('is known for more leases than a chunk has slots, and for the longest names', () => {
    const world = open();
    for (let n = 0; n < 1_500; n++) world.guard();
    expect(world.standby.chunks).toHaveLength(2);
    const lease: KeptLease = {
      name: 'long',
      key: 'k'.repeat(1_024),
      type: 'reentrant',
      owner: `${CLIENT}:1`,
      leaseTime: LEASE,
      validFor: LEASE,
      leaseEnd: LEASE,
      lost: undefined,
      confirm: (_: Moment) => {},
      standby: undefined as Standby | undefined,
      slot: -1,
    };
    world.standby.guard(lease, world.clock.now());
    expect(lease.slot).toBeGreaterThan(0);
    expect(world.standby.chunks).toHaveLength(3);
  });
});
