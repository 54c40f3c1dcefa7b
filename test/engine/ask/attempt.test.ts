import { type Acquired, BackendError, type Busy } from '../../../lib/backends/lock-backend.js';
import { Attempt, lateAnswer, PendingAttempts } from '../../../lib/engine/ask/attempt.js';
import { LeaseClock } from '../../../lib/engine/time/lease-clock.js';
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
    const attempt = (owner = 'client:1', key = 'lock:order', waiterTimeout = 0) =>
      new Attempt(services, key, owner, { type: 'reentrant', leaseTime: LEASE }, 0, waiterTimeout);
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

  it('that was to enter a line may have left a place there', async () => {
    const { attempt, released } = setUp();
    const unknown = attempt('client:1', 'lock:order', 5_000);
    await failed(unknown, new BackendError('no answer', 'unavailable', 'unknown'));
    expect(unknown.abandon()).toBe(true);
    expect(released).toMatchObject([{ owner: 'client:1', waits: true }]);
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

  it('has the lease that it asks for, from before it was sent on, or from when the backend confirmed it', async () => {
    const { runtime, attempt } = setUp();
    const sent = { monotonic: runtime.monotonic(), wall: runtime.wall() };
    const [plain, confirmed] = [attempt(), attempt()];
    await runtime.advance(300);
    expect(await answered(plain, GRANTED)).toBe('granted');
    expect(plain.sent).toEqual(sent);
    expect(plain.answeredAt).toEqual({ monotonic: 300, wall: sent.wall + 300 });
    expect(plain.reply).toBe(GRANTED);
    const later = { monotonic: 200, wall: sent.wall + 200 };
    expect(await answered(confirmed, { ...GRANTED, confirmed: later })).toBe('granted');
    expect(confirmed.sent).toEqual(later);
  });

  it('is in time until its lease is certainly over, counted from when the backend confirmed it', async () => {
    const { runtime, attempt } = setUp();
    const [inTime, late, confirmed] = [attempt(), attempt(), attempt()];
    await runtime.advance(987);
    expect(await answered(inTime, GRANTED)).toBe('granted');
    await runtime.advance(1);
    expect(await answered(late, GRANTED)).toBe('failed');
    expect(late.error).toMatchObject({ kind: 'unavailable', outcome: 'unknown' });
    expect(late.reply).toBe(GRANTED);
    const later = { monotonic: 1, wall: runtime.wall() - 987 };
    expect(await answered(confirmed, { ...GRANTED, confirmed: later })).toBe('granted');
  });

  it('may have copies under way whatever the answer is, so that its owner has to be released in the end', async () => {
    const { attempt, released } = setUp();
    const [granted, busy] = [attempt('client:1'), attempt('client:2')];
    await answered(granted, { ...GRANTED, validUntil: 0 });
    expect([granted.lateCopiesUntil, granted.leavesTraces, granted.inDoubt]).toEqual([0, true, false]);
    expect(granted.abandon()).toBe(false);
    await answered(busy, { ...BUSY, validUntil: 0 });
    expect([busy.lateCopiesUntil, busy.leavesTraces, busy.inDoubt]).toEqual([0, true, true]);
    expect(busy.abandon()).toBe(true);
    expect(released).toMatchObject([{ owner: 'client:2', validUntil: 0, leaseTime: LEASE, type: 'reentrant' }]);
  });

  it('that finds no former owner is gone, and is released', async () => {
    const { attempt, released } = setUp();
    const transfer = attempt();
    expect(await transfer.outcome(Promise.resolve(undefined), ({ state }) => state)).toBe('gone');
    expect([transfer.reply, transfer.lateCopiesUntil]).toEqual([undefined, undefined]);
    expect(transfer.abandon()).toBe(true);
    expect(released).toHaveLength(1);
  });

  it('passes its outcome to the one that asked, with the caller', async () => {
    const { attempt } = setUp();
    const outcomes: unknown[] = [];
    const asker = { settled: (outcome: Attempt, caller: string) => void outcomes.push([outcome, caller]) };
    const [granted, failing] = [attempt(), attempt()];
    granted.send(Promise.resolve(GRANTED), asker, 'ann');
    failing.send(Promise.reject(new BackendError('no answer', 'unavailable', 'unknown')), asker, 'bob');
    await new Promise((resolve) => setImmediate(resolve));
    expect(outcomes).toEqual([
      [granted, 'ann'],
      [failing, 'bob'],
    ]);
    expect([granted.state, failing.state]).toEqual(['granted', 'failed']);
  });

  it('asks for nothing but a lock of its type and lease, if nothing else is said', () => {
    const { attempt } = setUp();
    expect(attempt()).toMatchObject({
      reserve: 0,
      waiterTimeout: 0,
      pastLine: false,
      nonce: undefined,
      newest: undefined,
      permits: undefined,
      changesBefore: 0,
      ownerSpent: false,
    });
  });

  it('is the latest one when it has ended', async () => {
    const { attempt, pending } = setUp();
    const [first, second] = [attempt(), attempt()];
    expect(pending.latest).toBeUndefined();
    await answered(second, GRANTED);
    expect(pending.latest).toBe(second);
    await failed(first, new BackendError('no answer', 'unavailable', 'unknown'));
    expect(pending.latest).toBe(first);
  });

  describe('that the backend refuses', () => {
    const refusal = new BackendError('OOM', 'unavailable', 'refused');

    it('is remembered until another one is granted', async () => {
      const { attempt, pending, runtime } = setUp();
      await runtime.advance(70);
      await failed(attempt(), refusal);
      expect(pending.refusal).toEqual({ key: 'lock:order', error: refusal, at: 70, isOver: false });
      await answered(attempt(), BUSY);
      expect(pending.refusal?.isOver).toBe(false);
      await answered(attempt(), GRANTED);
      expect(pending.refusal).toEqual({ key: 'lock:order', error: refusal, at: 70, isOver: true });
      await failed(attempt(), refusal);
      expect(pending.refusal?.isOver).toBe(false);
    });

    it.each([
      ['the key holds something else', new BackendError('WRONGTYPE', 'key', 'refused')],
      ['there was no answer', new BackendError('no answer', 'unavailable', 'unknown')],
    ])('is nothing to remember if %s', async (_, error) => {
      const { attempt, pending } = setUp();
      await failed(attempt(), error);
      await answered(attempt(), GRANTED);
      expect(pending.refusal).toBeUndefined();
    });

    it('is also over by a grant that came too late, since the backend has granted it', async () => {
      const { attempt, pending, runtime } = setUp();
      await failed(attempt(), refusal);
      const late = attempt();
      await runtime.advance(LEASE);
      await answered(late, GRANTED);
      expect(pending.refusal?.isOver).toBe(true);
    });
  });

  describe('together with others', () => {
    it('is granted with them, each by its index', async () => {
      const { attempt } = setUp();
      const attempts = [attempt(), attempt()];
      const used: unknown[] = [];
      await Attempt.outcomes(attempts, Promise.resolve(GRANTED), (outcome, index) => used.push([outcome, index]));
      expect(used).toEqual([
        [attempts[0], 0],
        [attempts[1], 1],
      ]);
      expect(attempts.map(({ state }) => state)).toEqual(['granted', 'granted']);
    });

    it('fails with them', async () => {
      const { attempt } = setUp();
      const attempts = [attempt(), attempt()];
      const error = new BackendError('no answer', 'unavailable', 'unknown');
      let used = 0;
      await Attempt.outcomes(attempts, Promise.reject<Acquired>(error), () => void used++);
      expect(used).toBe(2);
      expect(attempts).toMatchObject([
        { state: 'failed', error },
        { state: 'failed', error },
      ]);
    });

    it('is used although the use of another one throws, the first of whose errors is thrown', async () => {
      const { attempt } = setUp();
      const attempts = [attempt(), attempt(), attempt()];
      const used: number[] = [];
      const done = Attempt.outcomes(attempts, Promise.resolve(GRANTED), (_, index) => {
        used.push(index);
        if (index !== 1) throw new Error(`use of ${index}`);
      });
      await expect(done).rejects.toThrow('use of 0');
      expect(used).toEqual([0, 1, 2]);
    });
  });

  it('that was removed by force is not doubtful, whatever others report before or after', async () => {
    for (const order of ['before', 'after']) {
      const { pending, attempt, doubted } = setUp();
      const removal = { key: 'lock:order', owners: ['client:1'] };
      const removed = attempt();
      if (order === 'before') pending.interfere(removal, 'doubtful');
      pending.interfere(removal, 'removed');
      if (order === 'after') pending.interfere(removal, 'doubtful');
      expect([removed.wasRemoved, removed.isDoubtful]).toEqual([true, false]);
      expect(await answered(removed, GRANTED)).toBe('removed');
      expect(doubted).toEqual([]);
    }
  });

  it('that was doubtful and failed has its lock checked, too', async () => {
    const { pending, attempt, doubted } = setUp();
    const doubtful = attempt();
    pending.interfere({ key: 'lock:order', owners: ['client:1'] }, 'doubtful');
    await failed(doubtful, new BackendError('no answer', 'unavailable', 'unknown'));
    expect(doubted).toEqual([{ key: 'lock:order', owners: ['client:1'] }]);
  });
});

describe('an answer', () => {
  it('is late when the lease has certainly ended, which may be a refusal', () => {
    const runtime = new VirtualRuntime();
    const clock = new LeaseClock(runtime);
    const sent = clock.now();
    runtime.block(987);
    expect(lateAnswer(clock, sent, LEASE)).toBeUndefined();
    runtime.block(1);
    expect(lateAnswer(clock, sent, LEASE)).toMatchObject({ kind: 'unavailable', outcome: 'unknown' });
    expect(lateAnswer(clock, sent, LEASE, undefined, 'refused')).toMatchObject({ outcome: 'refused' });
    expect(lateAnswer(clock, sent, LEASE)?.message).toContain('after the lease of 1000 ms had ended');
    expect(lateAnswer(clock, sent, LEASE, sent)).toBeUndefined();
  });
});
