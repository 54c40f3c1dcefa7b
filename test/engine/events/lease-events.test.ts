import { EventHub } from '../../../lib/engine/events/event-hub.js';
import {
  announceAcquired,
  announceDetached,
  announceLost,
  announceReleased,
  announceRenewalFailed,
  eventOf,
  startTime,
} from '../../../lib/engine/events/lease-events.js';
import { EVENT_NAMES, type LockEventName } from '../../../lib/engine/events/lock-events.js';
import type { HeldLock, LockShare } from '../../../lib/engine/hold/held-lock.js';
import { RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

describe('events of leases', () => {
  /** What the listeners of these events have heard. */
  const open = (...names: readonly LockEventName[]) => {
    const runtime = new VirtualRuntime();
    const events = new EventHub(runtime, new RecordingLogger());
    const heard: unknown[] = [];
    const emitted: string[] = [];
    const { emit } = events;
    events.emit = (event, details) => {
      emitted.push(event);
      emit.call(events, event, details as never);
    };
    for (const name of names) events.on(name, (event) => heard.push({ event: name, ...(event as object) }));
    return { runtime, events, heard, emitted };
  };

  const terms = { group: 'payments', method: 'Orders.pay' } as LockShare['terms'];
  const share = { terms } as LockShare;
  const lock = (name: string, ...shares: readonly LockShare[]) =>
    ({ name, type: 'fair', owner: `ann:${name}`, token: 7, since: 100, shares }) as unknown as HeldLock;
  const described = (name: string) => ({ name, type: 'fair', ...terms, owner: `ann:${name}` });

  it.each(EVENT_NAMES)('need the time of an acquisition if somebody listens to durations: %s', async (name) => {
    const { runtime, events } = open(name as LockEventName);
    await runtime.advance(70);
    const isTimed = ['acquired', 'released', 'detached'].includes(name);
    expect(startTime({ runtime, events })).toBe(isTimed ? 70 : undefined);
  });

  it('say of an acquisition which locks were not held before, and how long it took', async () => {
    const { runtime, events, heard } = open('acquired');
    await runtime.advance(70);
    const locks = [lock('order', share), lock('stock', share, share)];
    announceAcquired({ events, runtime }, { locks, terms }, 20);
    const acquired = { event: 'acquired', ...described('order'), fencingToken: 7, waited: 50 };
    expect(heard).toEqual([acquired]);
    announceAcquired({ events, runtime }, { locks: [lock('order', share)], terms }, undefined);
    expect(heard.slice(1)).toEqual([{ ...acquired, waited: 0 }]);
    announceAcquired({ events, runtime }, { locks: [lock('order', share)], terms }, 70, 'ticket:1');
    expect(heard.slice(2)).toEqual([{ ...acquired, waited: 0, ticketOwner: 'ticket:1' }]);
  });

  it('do not announce acquisitions if nobody listens to durations', () => {
    const { runtime, events, emitted } = open('lost');
    announceAcquired({ events, runtime }, { locks: [lock('order', share)], terms }, undefined);
    expect(emitted).toEqual([]);
  });

  it.each([true, false])('say of a release for how long the freed locks were held, and by whom (%s)', async (known) => {
    const { runtime, events, heard } = open('released');
    const lease = { locks: [lock('order', share), lock('stock', share)], terms };
    if (known) announceAcquired({ events, runtime }, lease, undefined);
    await runtime.advance(70);
    announceReleased({ events, runtime }, lease, [lock('order')], known);
    const held = known ? 70 : undefined;
    expect(heard).toEqual([{ event: 'released', ...described('order'), held, confirmed: known }]);
  });

  it.each([true, false])('say of a detached lock who owns it now, and for how long it was held (%s)', async (known) => {
    const { runtime, events, heard } = open('detached');
    const lease = { locks: [lock('order', share)], terms };
    if (known) announceAcquired({ events, runtime }, lease, undefined);
    await runtime.advance(70);
    announceDetached({ events, runtime }, lease, { owner: 'ticket:1', leaseTime: 5_000 as never });
    const ticket = { ticketOwner: 'ticket:1', leaseTime: 5_000 };
    expect(heard).toEqual([{ event: 'detached', ...described('order'), held: known ? 70 : undefined, ...ticket }]);
  });

  it('do not mention a detached lock, or a failed renewal, to those who listen to others', () => {
    const { runtime, events, emitted } = open('released', 'lost');
    const lease = { locks: [lock('order', share)], terms };
    announceDetached({ events, runtime }, lease, { owner: 'ticket:1', leaseTime: 5_000 as never });
    announceRenewalFailed(events, lock('order', share), 900, new Error('refused'));
    expect(emitted).toEqual([]);
  });

  it('say of a lost lock since when its process had it', async () => {
    const { runtime, events, heard } = open('lost');
    await runtime.advance(170);
    const error = new Error('gone');
    announceLost({ events, runtime }, lock('order'), error, terms);
    announceLost({ events, runtime }, lock('order'), error, undefined, 'order, stock');
    const lost = { event: 'lost', ...described('order'), held: 70, error };
    expect(heard).toEqual([lost, { ...lost, name: 'order, stock', group: '', method: '' }]);
  });

  it('say of a failed renewal how long the lease still lasts', () => {
    const { events, heard } = open('renewalFailed');
    const error = new Error('refused');
    announceRenewalFailed(events, lock('order', share), 900, error);
    expect(heard).toEqual([{ event: 'renewalFailed', ...described('order'), remainingTime: 900, error }]);
  });

  it('describe a lock by its first lease, if there is one', () => {
    const other = { terms: { group: 'others', method: '' } } as LockShare;
    expect(eventOf(lock('order', share, other))).toEqual(described('order'));
    expect(eventOf(lock('order'))).toEqual({ ...described('order'), group: '', method: '' });
  });
});
