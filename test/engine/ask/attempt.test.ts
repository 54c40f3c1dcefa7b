import { type Acquired, BackendError, type Busy } from '../../../lib/backends/lock-backend.js';
import { Attempt, PendingAttempts } from '../../../lib/engine/ask/attempt.js';
import { LeaseClock } from '../../../lib/engine/hold/lease-clock.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

const LEASE = 1_000;
const GRANTED: Acquired = { acquired: true, token: 1, reserved: 0 };
const BUSY: Busy = { acquired: false, remaining: 500, holder: 'other:1' };

/** @returns the state of the attempt after this answer */
const answered = (attempt: Attempt, reply: Acquired | Busy) =>
  attempt.outcome(Promise.resolve(reply), ({ state }) => state);
const failed = (attempt: Attempt, error: BackendError) =>
  attempt.outcome(Promise.reject<Acquired>(error), ({ state }) => state);

describe('a request for a lock', () => {
  const setUp = () => {
    const runtime = new VirtualRuntime();
    const doubted: unknown[] = [];
    const released: unknown[] = [];
    const pending = new PendingAttempts();
    pending.doubted = (removal) => void doubted.push(removal);
    const services = {
      clock: new LeaseClock(runtime),
      pendingAttempts: pending,
      backgroundReleases: { release: (release: unknown) => void released.push(release) },
    };
    const attempt = (owner = 'client:1', key = 'lock:order') =>
      new Attempt(services, key, owner, { type: 'reentrant', leaseTime: LEASE });
    return { runtime, pending, attempt, doubted, released };
  };

  it('that is granted leaves nothing to release', async () => {
    const { attempt, released } = setUp();
    const granted = attempt();
    expect(await answered(granted, GRANTED)).toBe('granted');
    expect(granted.leavesTraces).toBe(false);
    expect(granted.abandon()).toBe(false);
    expect(released).toEqual([]);
  });

  it('that is pending leaves nothing to release yet', async () => {
    const { attempt, released } = setUp();
    const pending = attempt();
    expect(pending.state).toBe('pending');
    expect(pending.leavesTraces).toBe(false);
    expect(pending.abandon()).toBe(false);
    expect(released).toEqual([]);
  });

  it('that finds the lock busy leaves nothing to release, and its owner can ask again', async () => {
    const { attempt, released } = setUp();
    const busy = attempt();
    expect(await answered(busy, BUSY)).toBe('busy');
    expect(busy.ownerSpent).toBe(false);
    expect(busy.abandon()).toBe(false);
    expect(released).toEqual([]);
  });

  it('whose owner the backend has released needs another owner for the next request', async () => {
    const { attempt } = setUp();
    const busy = attempt();
    await answered(busy, { ...BUSY, spent: true });
    expect(busy.ownerSpent).toBe(true);
    const unanswered = attempt();
    await failed(unanswered, new BackendError('refused', 'unavailable', 'refused', { spent: true }));
    expect(unanswered.ownerSpent).toBe(true);
    expect(unanswered.abandon()).toBe(true);
  });

  it('that is granted after the end of its lease has failed, and is released once', async () => {
    const { runtime, attempt, released } = setUp();
    const late = attempt();
    await runtime.advance(LEASE);
    expect(await answered(late, GRANTED)).toBe('failed');
    expect(late.error).toBeInstanceOf(BackendError);
    expect(late.leavesTraces).toBe(true);
    expect(late.abandon()).toBe(true);
    expect(late.abandon()).toBe(false);
    expect(released).toMatchObject([{ key: 'lock:order', owner: 'client:1', waits: false }]);
  });

  it('that fails is released unless it was certainly not executed', async () => {
    const { attempt, released } = setUp();
    const unknown = attempt('client:1');
    await failed(unknown, new BackendError('no answer', 'unavailable', 'unknown', { validUntil: 7_000 }));
    expect(unknown.abandon(true)).toBe(true);
    const refused = attempt('client:2');
    await failed(refused, new BackendError('refused', 'unavailable', 'refused'));
    expect(refused.abandon(true)).toBe(false);
    expect(released).toMatchObject([{ owner: 'client:1', validUntil: 7_000, waits: true }]);
  });

  it('grants nothing if its owner was released by force in this process meanwhile', async () => {
    const { pending, attempt, released } = setUp();
    const removed = attempt();
    pending.interfere({ key: 'lock:order', owners: ['client:0', 'client:1'] }, 'removed');
    expect(await answered(removed, GRANTED)).toBe('removed');
    expect(removed.wasRemoved).toBe(true);
    expect(removed.abandon()).toBe(true);
    expect(released).toHaveLength(1);
  });

  it('is not affected by the forced release of another owner, or of another lock of its owner', async () => {
    const { pending, attempt, doubted } = setUp();
    const others = [attempt('client:2', 'lock:order'), attempt('client:1', 'lock:stock')];
    pending.interfere({ key: 'lock:order', owners: ['client:1'] }, 'removed');
    pending.interfere({ key: 'lock:order', owners: ['client:1'] }, 'doubtful');
    expect(await Promise.all(others.map((other) => answered(other, GRANTED)))).toEqual(['granted', 'granted']);
    expect(others.some(({ wasRemoved }) => wasRemoved)).toBe(false);
    expect(doubted).toEqual([]);
  });

  it('has its lock checked after its end if another process reports a forced release of its owner', async () => {
    const { pending, attempt, doubted } = setUp();
    const doubtful = attempt();
    pending.interfere({ key: 'lock:order', owners: ['client:1'] }, 'doubtful');
    expect(doubted).toEqual([]);
    expect(await answered(doubtful, GRANTED)).toBe('granted');
    expect(doubted).toEqual([{ key: 'lock:order', owners: ['client:1'] }]);
    pending.interfere({ key: 'lock:order', owners: ['client:1'] }, 'removed');
    expect(doubtful.wasRemoved).toBe(false);
  });
});
