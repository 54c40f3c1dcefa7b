import type { LockState, Removal } from '../../../lib/backends/lock-backend.js';
import type { Interference } from '../../../lib/engine/ask/attempt.js';
import { LockLostError } from '../../../lib/engine/errors.js';
import { EventHub } from '../../../lib/engine/events/event-hub.js';
import { ForcedReleases } from '../../../lib/engine/hold/forced-releases.js';
import { openVirtualWorld, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

describe('a message that a lock was released by force', () => {
  const world = openVirtualWorld();

  /** A process that holds a lock, and another one. The lock is removed without a message to the holder. */
  const open = async () => {
    const [holder, other] = [await world.process(), await world.process()];
    const lease = await holder.locks.acquire('order');
    const { services } = holder.locks.engine;
    const removal: Removal = { key: services.keyOf('order'), owners: [lease.owner] };
    const free = () => other.backend.forceRelease(removal.key);
    return { ...holder, lease, removal, services, free };
  };

  it('is believed when the backend confirms it', async () => {
    const { lease, removal, services, free, runtime } = await open();
    await free();
    services.forcedReleases.verify(removal);
    await runtime.settle();
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(lease.held).toBe(false);
  });

  it('is not believed when the backend still has the owner, or gives no answer', async () => {
    const { lease, removal, services, free, backend, runtime } = await open();
    services.forcedReleases.verify(removal);
    await runtime.settle();
    expect(lease.held).toBe(true);
    await free();
    backend.disturb(refused, 'inspect');
    services.forcedReleases.verify(removal);
    await runtime.settle();
    expect(lease.held).toBe(true);
    expect(backend.count('inspect')).toBe(2);
  });

  it('does not concern other locks, nor other owners', async () => {
    const { lease, removal, services, backend, runtime } = await open();
    services.forcedReleases.verify({ ...removal, owners: ['eve:1'] });
    services.forcedReleases.verify({ ...removal, key: `${removal.key}:2` });
    await runtime.settle();
    expect(backend.count('inspect')).toBe(0);
    expect(lease.held).toBe(true);
  });

  it('that comes while the backend is asked leads to another question, since the answer may be older', async () => {
    const { lease, removal, services, free, backend, runtime } = await open();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'inspect');
    services.forcedReleases.verify(removal);
    await runtime.settle();
    await free();
    for (let n = 0; n < 3; n++) services.forcedReleases.verify(removal);
    expect(backend.count('inspect')).toBe(1);
    backend.heal();
    answer.open();
    await runtime.settle();
    expect(backend.count('inspect')).toBe(2);
    expect(lease.held).toBe(false);
  });

  it('may have been missed before the process listened, so that what it holds is checked then', async () => {
    const { lease, free, backend, runtime } = await open();
    await free();
    await runtime.advance(900);
    expect([backend.listensToClient, lease.held]).toEqual([false, true]);
    await runtime.advance(200);
    expect([backend.listensToClient, lease.held]).toEqual([true, false]);
    expect(backend.count('renew')).toBe(0);
  });

  it('is not listened for by a process that is closed', async () => {
    const { services } = await open();
    let subscriptions = 0;
    const listenToClient = () => {
      subscriptions++;
      return { ready: Promise.resolve(), close: () => void subscriptions-- };
    };
    const backend = Object.assign(Object.create(services.backend), { listenToClient });
    const forced = new ForcedReleases(Object.assign(Object.create(services), { backend }));
    forced.listen();
    forced.listen();
    expect(subscriptions).toBe(1);
    forced.close();
    forced.listen();
    expect(subscriptions).toBe(0);
  });
});

describe('a process that hears of forced releases', () => {
  const OWNER = 'ann:1';
  const holder = (owner: string) => ({ owner, remaining: 1_000 });

  /** What it holds, the messages to it, and the questions that it has asked. */
  const open = (count = 1, blocking?: object) => {
    const runtime = new VirtualRuntime();
    const locks = Array.from({ length: count }, (_, n) => {
      const lock = {
        name: `order:${n}`,
        key: `lock:order:${n}`,
        owner: OWNER,
        lost: undefined as Error | undefined,
        lose: (error: Error) => {
          lock.lost = error;
        },
      };
      return lock;
    });
    let held = locks;
    let hear: (removal: Removal) => void = () => {};
    const counts = { subscriptions: 0 };
    const asked: string[] = [];
    const interferences: unknown[] = [];
    const ready = latch();
    const answers = { inspect: async (): Promise<Partial<LockState>> => ({ owners: [] }) };
    const backend = {
      blocking,
      inspect: (key: string) => {
        asked.push(key);
        return answers.inspect();
      },
      listenToClient: (client: string, listener: typeof hear) => {
        expect(client).toBe('ann');
        counts.subscriptions++;
        hear = listener;
        return { ready: ready.promise, close: () => void counts.subscriptions-- };
      },
    };
    const pendingAttempts = {
      doubted: (_: Removal) => {},
      interfere: (removal: Removal, interference: Interference) => void interferences.push([removal, interference]),
    };
    const services = {
      backend,
      runtime,
      clientId: 'ann',
      events: new EventHub(runtime, new RecordingLogger()),
      pendingAttempts,
      heldLocks: (key?: string) => held.filter((lock) => key === undefined || lock.key === key),
    };
    const forced = new ForcedReleases(services as never);
    const forget = (lock: (typeof locks)[number]) => {
      held = held.filter((other) => other !== lock);
    };
    const message = (removal: Removal) => hear(removal);
    return { ...services, forced, runtime, locks, counts, asked, interferences, ready, answers, forget, message };
  };
  const removal: Removal = { key: 'lock:order:0', owners: [OWNER] };

  it('listens from the start if others wait in the backend, and otherwise when it is told to', () => {
    expect(open(1, {}).counts.subscriptions).toBe(1);
    const { forced, counts } = open();
    expect(counts.subscriptions).toBe(0);
    forced.listen();
    expect(counts.subscriptions).toBe(1);
  });

  it('cannot listen on a backend without messages', async () => {
    const { forced, backend, runtime, asked } = open();
    Object.assign(backend, { listenToClient: undefined });
    forced.listen();
    await runtime.settle();
    forced.close();
    expect(asked).toEqual([]);
  });

  it('asks about what it holds when it listens: about a thousand locks at most', async () => {
    const { forced, locks, asked, ready, runtime } = open(1_002);
    forced.listen();
    await runtime.settle();
    expect(asked).toEqual([]);
    ready.open();
    await runtime.settle();
    expect(asked).toHaveLength(1_000);
    expect(locks.filter(({ lost }) => lost === undefined)).toEqual(locks.slice(1_000));
    // Nobody has said that it was released by force.
    expect(locks[0].lost?.message).toContain(
      'when it was looked up (was it force-released or deleted, or did the backend',
    );
  });

  it('asks about nothing if it was closed before it listened', async () => {
    const { forced, asked, ready, runtime, counts } = open();
    forced.listen();
    forced.close();
    ready.open();
    await runtime.settle();
    expect([asked, counts.subscriptions]).toEqual([[], 0]);
  });

  it('asks about the lock that a message names, because anybody can send one', async () => {
    const { forced, locks, asked, message, runtime, interferences } = open(2);
    forced.listen();
    message(removal);
    expect(locks[0].lost).toBeUndefined();
    expect(interferences).toEqual([[removal, 'doubtful']]);
    await runtime.settle();
    expect(asked).toEqual(['lock:order:0']);
    expect(locks[0].lost?.message).toContain("'order:0' was lost: it was force-released");
    expect(locks[1].lost).toBeUndefined();
  });

  it('believes its backend, which gives a reason, at once', () => {
    const { forced, locks, asked, message, interferences } = open();
    forced.listen();
    const reasoned = { ...removal, reason: 'its server left the quorum' };
    message(reasoned);
    expect(locks[0].lost?.message).toBe("The lock 'order:0' was lost: its server left the quorum");
    expect(interferences).toEqual([[reasoned, 'removed']]);
    expect(asked).toEqual([]);
  });

  it('loses at once what it has released by force, if that had its owner', () => {
    const { forced, locks, asked, interferences } = open();
    forced.removed({ ...removal, owners: ['eve:1'] });
    expect(locks[0].lost).toBeUndefined();
    forced.removed(removal);
    expect(locks[0].lost).toBeInstanceOf(LockLostError);
    expect(interferences.slice(1)).toEqual([[removal, 'removed']]);
    expect(asked).toEqual([]);
  });

  it.each<[string, Partial<LockState>]>([
    ['it is one of the owners', { owners: [holder('eve:1'), holder(OWNER)] }],
    ['it may be one of them', { owners: [], possibleOwners: ['eve:1', OWNER] }],
  ])('keeps a lock if the backend says that %s', async (_, state) => {
    const { forced, locks, answers, runtime } = open();
    answers.inspect = async () => state;
    forced.verify(removal);
    await runtime.settle();
    expect(locks[0].lost).toBeUndefined();
  });

  it('loses a lock that others have', async () => {
    const { forced, locks, answers, runtime } = open();
    answers.inspect = async () => ({ owners: [holder('eve:1')], possibleOwners: ['bob:1'] });
    forced.verify(removal);
    await runtime.settle();
    expect(locks[0].lost).toBeInstanceOf(LockLostError);
  });

  it('does not lose a lock that it has given back before the answer', async () => {
    const { forced, locks, forget, runtime } = open();
    forced.verify(removal);
    forget(locks[0]);
    await runtime.settle();
    expect(locks[0].lost).toBeUndefined();
  });

  it('does not ask again about a lost lock, but about one that is still held, as often as there are messages', async () => {
    const { forced, locks, asked, answers, runtime } = open();
    const answer = latch();
    answers.inspect = () => answer.promise.then(() => ({ owners: [] }));
    forced.verify(removal);
    forced.verify(removal);
    answer.open();
    await runtime.settle();
    expect(asked).toHaveLength(1);
    expect(locks[0].lost).toBeInstanceOf(LockLostError);

    const other = open();
    other.answers.inspect = async () => ({ owners: [holder(OWNER)] });
    for (let n = 1; n <= 3; n++) {
      other.forced.verify(removal);
      await other.runtime.settle();
      expect(other.asked).toHaveLength(n);
    }
  });

  it('asks once more about a lock that is still held, after messages that came before the answer', async () => {
    const { forced, asked, answers, runtime } = open();
    const answer = latch();
    answers.inspect = () => answer.promise.then(() => ({ owners: asked.length > 5 ? [] : [holder(OWNER)] }));
    for (let n = 0; n < 3; n++) forced.verify(removal);
    answer.open();
    await runtime.settle();
    expect(asked).toHaveLength(2);
  });

  it('does not begin to listen once it is closed', () => {
    const { forced, counts } = open();
    forced.close();
    forced.listen();
    expect(counts.subscriptions).toBe(0);
  });

  it('asks about a lock whose acquisition was doubtful, when its lease has been created', async () => {
    const { pendingAttempts, asked, runtime } = open();
    pendingAttempts.doubted(removal);
    expect(asked).toEqual([]);
    await runtime.settle();
    expect(asked).toEqual(['lock:order:0']);
  });
});
