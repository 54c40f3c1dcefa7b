import { BackendError } from '../../../lib/backends/backend-error.js';
import { InProcessWaits, WaitStore } from '../../../lib/backends/in-process-waits.js';
import type { WaitChange } from '../../../lib/backends/wait-backend.js';
import { DeadlockDetector } from '../../../lib/engine/deadlock/deadlock-detector.js';
import type { JournalRecord } from '../../../lib/engine/deadlock/journal-record.js';
import type { HolderClient } from '../../../lib/engine/describe-holder.js';
import { LockDeadlockError } from '../../../lib/engine/errors.js';
import type { LockWaiter } from '../../../lib/engine/hold/held-lock.js';
import { LockScope, lockScopes, noteCall, type ScopedLease } from '../../../lib/engine/scope/lock-scope.js';
import { ShareGates } from '../../../lib/engine/scope/share-gate.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { latch } from '../../support/section.js';

describe('a wait in which there may be a deadlock', () => {
  let runtime: VirtualRuntime;
  let waits: InProcessWaits;
  let detector: DeadlockDetector;
  let warnings: string[];
  beforeEach(() => {
    warnings = [];
    runtime = new VirtualRuntime();
    waits = new InProcessWaits(new WaitStore(), runtime.monotonic, runtime.monotonic, async () => []);
    detector = new DeadlockDetector(
      waits,
      runtime,
      'client',
      async () => undefined,
      (message) => warnings.push(message),
    );
  });

  /** A caller that holds a lock by `owner` begins to wait for another one. */
  function begin(owner: string): LockWaiter {
    const waiter = { settled: false, name: 'busy', terms: { waitTime: 60_000, reentry: true } } as LockWaiter;
    const lease = { live: true, released: false, locks: [{ owner }], gates: new ShareGates([]) };
    const scope = new LockScope(lease as unknown as ScopedLease, undefined);
    lockScopes.run(scope, () => detector.add(waiter, { key: 'lock:busy', dismiss: () => {} }));
    return waiter;
  }

  /** How many waits are written down under an owner. */
  const written = async (owner: string) => (await waits.read([owner]))[0].size;

  it('is written down after a second, whether or not an earlier one has ended meanwhile', async () => {
    const earlier = begin('earlier');
    await runtime.advance(500);
    begin('later');
    earlier.settled = true;
    await runtime.advance(900);
    expect(await written('later')).toBe(0);
    await runtime.advance(500);
    expect([await written('earlier'), await written('later')]).toEqual([0, 1]);
  });

  it('keeps the process running from then on until it ends', async () => {
    const waiter = begin('owner');
    await runtime.advance(900);
    expect(runtime.keepAliveTimers).toBe(0);
    await runtime.advance(200);
    expect(runtime.keepAliveTimers).toBe(1);
    waiter.settled = true;
    await runtime.advance(1_000);
    expect([runtime.keepAliveTimers, runtime.timers]).toEqual([0, 0]);
  });

  it('is forgotten when the service is closed', async () => {
    begin('owner');
    await runtime.advance(1_100);
    detector.close();
    begin('after the end');
    expect(runtime.timers).toBe(0);
    await runtime.advance(5_000);
    expect([await written('owner'), await written('after the end')]).toEqual([0, 0]);
  });

  describe('that cannot be written down', () => {
    const failWith = (error: BackendError | undefined) => {
      const { write } = InProcessWaits.prototype;
      waits.write = error === undefined ? write.bind(waits) : () => Promise.reject(error);
    };
    const warning = ['Deadlocks cannot be detected: no memory'];

    it('is in the log once, after a second without success', async () => {
      failWith(new BackendError('no memory', 'unavailable', 'refused'));
      begin('owner');
      await runtime.advance(1_600);
      expect(warnings).toEqual([]);
      await runtime.advance(200);
      expect(warnings).toEqual(warning);
      await runtime.advance(10_000);
      expect(warnings).toEqual(warning);
    });

    it('is in the log again after a success', async () => {
      const error = new BackendError('no memory', 'unavailable', 'refused');
      failWith(error);
      begin('owner');
      await runtime.advance(1_600);
      failWith(undefined);
      await runtime.advance(300);
      failWith(error);
      await runtime.advance(700);
      expect(warnings).toEqual([]);
      await runtime.advance(300);
      expect(warnings).toEqual(warning);
      failWith(undefined);
      await runtime.advance(1_000); // of a wait that is old, not every try is a full one
      failWith(error);
      await runtime.advance(1_000);
      expect(warnings).toEqual([...warning, ...warning]);
    });

    it('is in the log at once if this needs a right that the service does not have', async () => {
      failWith(new BackendError('no memory', 'denied', 'refused'));
      begin('owner');
      await runtime.advance(1_100);
      expect(warnings).toEqual(warning);
    });
  });
});

describe('the detector of deadlocks', () => {
  let runtime: VirtualRuntime;
  let waits: InProcessWaits;
  /** The holders of each lock, by the key of the lock. */
  let holders: Map<string, readonly string[]>;
  /** The keys of the locks whose holders were asked for. */
  let asked: string[];
  let read: string[];
  let written: (readonly WaitChange[])[];
  let clients: Map<string, HolderClient>;
  let detector: DeadlockDetector;
  beforeEach(() => {
    runtime = new VirtualRuntime();
    [holders, asked, read, written, clients] = [new Map(), [], [], [], new Map()];
    waits = new InProcessWaits(new WaitStore(), runtime.monotonic, runtime.monotonic, async (key) => {
      asked.push(key);
      return holders.get(key) ?? [];
    });
    const { read: readWaits, write } = InProcessWaits.prototype;
    waits.read = (owners) => {
      read.push(...owners);
      return readWaits.call(waits, owners);
    };
    waits.write = (changes, lifetime) => {
      written.push(changes);
      return write.call(waits, changes, lifetime);
    };
    detector = new DeadlockDetector(
      waits,
      runtime,
      'client',
      async (owner) => clients.get(owner),
      () => {},
    );
  });

  interface WaitOptions {
    readonly terms?: object;
    readonly settled?: boolean;
    readonly by?: DeadlockDetector;
    readonly gate?: boolean;
  }
  /** A caller that holds a lock by `owner` waits for the lock `key`. */
  function begin(owner: string, key: string, { terms, settled = false, by = detector, gate }: WaitOptions = {}) {
    const refused: Error[] = [];
    const waiter = {
      settled,
      name: key,
      terms: { waitTime: 60_000, reentry: true, tentative: false, ...terms },
      onSettled: undefined as (() => void) | undefined,
    };
    const lease = { live: true, released: false, locks: [{ owner }], gates: new ShareGates([]) };
    const scope = new LockScope(lease as unknown as ScopedLease, undefined);
    const place = gate ? new ShareGates([]).gate(key) : { key, dismiss: () => {} };
    const dismiss = (_: LockWaiter, error: Error) => {
      refused.push(error);
      end();
    };
    Object.assign(place, { dismiss });
    const add = () => by.add(waiter as unknown as LockWaiter, place);
    lockScopes.run(scope, add);
    const end = () => {
      waiter.settled = true;
      waiter.onSettled?.();
    };
    const goOn = () => lockScopes.run(scope, noteCall);
    return { waiter, refused, end, goOn, place };
  }
  const recordsOf = async (owner: string) =>
    [...(await InProcessWaits.prototype.read.call(waits, [owner]))[0]].map(
      ([id, text]) => [id, JSON.parse(text) as JournalRecord] as const,
    );
  const countIn = async (time: number, list: readonly unknown[]) => {
    const before = list.length;
    await runtime.advance(time);
    return list.length - before;
  };

  describe('takes no notice', () => {
    it.each<[string, WaitOptions]>([
      ['of a caller who can do without the lock', { terms: { tentative: true } }],
      ['of a caller who does not belong to the scope', { terms: { reentry: false } }],
      ['of a caller who was served at once', { settled: true }],
    ])('%s', async (_, options) => {
      begin('owner', 'lock:busy', options);
      expect(runtime.timers).toBe(0);
      await runtime.advance(1_500);
      expect([asked, written]).toEqual([[], []]);
    });

    it('of a caller outside all locks', async () => {
      const waiter = { settled: false, name: 'busy', terms: { reentry: true } } as unknown as LockWaiter;
      detector.add(waiter, { key: 'lock:busy', dismiss: () => {} });
      expect(runtime.timers).toBe(0);
    });

    it('of anybody if the backend stores no waits', () => {
      const without = new DeadlockDetector(
        undefined,
        runtime,
        'client',
        async () => undefined,
        () => {},
      );
      begin('owner', 'lock:busy', { by: without });
      expect(runtime.timers).toBe(0);
    });
  });

  it('records each wait under an id of its own, and again every 250 ms', async () => {
    holders.set('lock:busy', ['other:1']);
    begin('owner', 'lock:busy');
    begin('second', 'lock:busy');
    expect(runtime.timers).toBe(1);
    await runtime.advance(999);
    expect(written).toEqual([]);
    await runtime.advance(1);
    expect(written).toHaveLength(1);
    expect(await recordsOf('owner')).toEqual([
      ['client/1', { lock: 'lock:busy', owner: 'owner', holders: ['other:1'], began: 0, ends: 60_000, beat: 1 }],
    ]);
    expect((await recordsOf('second')).map(([id]) => id)).toEqual(['client/2']);
    await runtime.advance(249);
    expect(written).toHaveLength(1);
    await runtime.advance(1);
    expect(written).toHaveLength(2);
    expect((await recordsOf('owner'))[0][1].beat).toBe(2);
  });

  it('asks once for the holders of a lock for which several wait', async () => {
    for (const owner of ['a', 'b', 'c']) begin(owner, 'lock:busy');
    begin('d', 'lock:other');
    await runtime.advance(1_000);
    expect(asked).toEqual(['lock:busy', 'lock:other']);
    await runtime.advance(250);
    expect(asked).toHaveLength(4);
  });

  it('writes a wait although the holders of its lock are not known', async () => {
    const known = waits.holders;
    Object.assign(waits, {
      holders: (key: string) => (key === 'lock:busy' ? Promise.reject(new Error('no answer')) : known(key)),
    });
    begin('owner', 'lock:busy');
    await runtime.advance(1_000);
    expect((await recordsOf('owner'))[0][1].holders).toEqual([]);
  });

  it('writes a hundred holders of a lock at most', async () => {
    const crowd = Array.from({ length: 101 }, (_, n) => `other:${n}`);
    holders.set('lock:busy', crowd);
    begin('owner', 'lock:busy');
    await runtime.advance(1_000);
    expect((await recordsOf('owner'))[0][1].holders).toEqual(crowd.slice(0, 100));
  });

  it('writes the gate at which a caller waits, and does not ask for holders', async () => {
    begin('owner', 'lock:busy', { gate: true });
    await runtime.advance(1_000);
    const [[, { holders: gates }]] = await recordsOf('owner');
    expect(gates).toEqual([expect.stringMatching(/^client\/gate\/\d+$/)]);
    expect(asked).toEqual([]);
  });

  it('takes notice of five hundred waits at most, the oldest ones', async () => {
    for (let n = 0; n < 501; n++) begin(`owner:${n}`, 'lock:busy');
    await runtime.advance(1_000);
    expect(written[0]).toHaveLength(500);
    expect([await recordsOf('owner:499'), await recordsOf('owner:500')]).toEqual([[expect.anything()], []]);
  });

  it('removes waits that end together by one command, and others at once', async () => {
    const [a, b, c] = ['a', 'b', 'c'].map((owner) => begin(owner, 'lock:busy'));
    await runtime.advance(1_000);
    written.length = 0;
    a.end();
    b.end();
    await runtime.settle();
    expect(written.map((changes) => changes.map(({ holder, ended }) => [holder, ended]))).toEqual([
      [
        ['a', ['client/1']],
        ['b', ['client/2']],
      ],
    ]);
    c.end();
    await runtime.settle();
    expect(written).toHaveLength(2);
    expect(await recordsOf('c')).toEqual([]);
  });

  it('removes a wait at the next heartbeat if its removal has failed', async () => {
    const wait = begin('owner', 'lock:busy');
    await runtime.advance(1_000);
    const { write } = waits;
    waits.write = () => Promise.reject(new BackendError('no answer', 'unavailable', 'unknown'));
    wait.end();
    await runtime.settle();
    waits.write = write;
    expect(await recordsOf('owner')).toHaveLength(1);
    await runtime.advance(250);
    expect([await recordsOf('owner'), written.length]).toEqual([[], 2]);
    await runtime.advance(250);
    expect([written.length, runtime.timers]).toEqual([2, 0]);
  });

  it('warns that old waits cannot be followed, although they are written between two tries', async () => {
    const warnings: string[] = [];
    const warning = new DeadlockDetector(
      waits,
      runtime,
      'client',
      async () => undefined,
      (message) => warnings.push(message),
    );
    holders.set('lock:busy', ['other:1']);
    begin('owner', 'lock:busy', { by: warning });
    await runtime.advance(4_000);
    waits.read = () => Promise.reject(new BackendError('no answer', 'unavailable', 'unknown'));
    await runtime.advance(3_100);
    expect(warnings).toEqual([]);
    await runtime.advance(1_000);
    expect(warnings).toEqual(['Deadlocks cannot be detected: no answer']);
  });

  it('writes nothing when it is closed', async () => {
    const wait = begin('owner', 'lock:busy');
    await runtime.advance(1_000);
    detector.close();
    wait.end();
    await runtime.advance(2_000);
    expect([written.length, runtime.timers]).toEqual([1, 0]);
  });

  it('follows a branch at each heartbeat, however long it waits, and others at every fourth', async () => {
    holders.set('lock:busy', ['other:1']);
    const branch = begin('owner', 'lock:busy');
    branch.goOn();
    await runtime.advance(4_000);
    expect(await countIn(2_000, read)).toBe(8);
    branch.end();
    begin('second', 'lock:busy');
    await runtime.advance(4_000);
    expect(await countIn(2_000, read)).toBe(2);
  });

  it('follows others for three seconds at each heartbeat', async () => {
    holders.set('lock:busy', ['other:1']);
    begin('owner', 'lock:busy');
    expect(await countIn(2_999, read)).toBe(8);
    expect(await countIn(2_001, read)).toBe(2);
  });

  it('does not follow a wait that ended while it was written', async () => {
    holders.set('lock:busy', ['other:1']);
    const wait = begin('owner', 'lock:busy');
    const { write } = waits;
    waits.write = async (changes, lifetime) => {
      await write(changes, lifetime);
      wait.waiter.settled = true;
    };
    await runtime.advance(1_000);
    expect([written.length, read]).toEqual([1, []]);
  });

  it('does not write a wait that ended while the backend was asked', async () => {
    const wait = begin('owner', 'lock:busy');
    const clockOffset = latch();
    waits.clockOffset = async () => {
      await clockOffset.promise;
      return 0;
    };
    await runtime.advance(1_000);
    wait.waiter.settled = true;
    clockOffset.open();
    await runtime.settle();
    expect(written.flat()).toEqual([]);
  });

  describe('ends the wait', () => {
    /** Two callers that hold `lock:a` and `lock:b`, and wait for each other. The second one began later. */
    const deadlock = async (by?: DeadlockDetector) => {
      holders.set('lock:a', ['a']).set('lock:b', ['b']);
      const one = begin('a', 'lock:b');
      await runtime.advance(10);
      const two = begin('b', 'lock:a', { by });
      return { one, two };
    };
    const client = { application: 'shop', host: 'web-7', pid: 42, group: '', method: '' } as HolderClient;

    it('that completes a deadlock, within a heartbeat and the time to confirm it', async () => {
      clients.set('a', client);
      const { one, two } = await deadlock();
      await runtime.advance(1_600);
      expect(two.refused).toEqual([]);
      await runtime.advance(100);
      expect(one.refused).toEqual([]);
      expect(two.refused).toEqual([expect.any(LockDeadlockError)]);
      expect(two.refused[0]).toMatchObject({
        lockName: 'lock:a',
        cycle: [
          { owner: 'b', holds: 'lock:b', waitsFor: 'lock:a' },
          { owner: 'a', holds: 'lock:a', waitsFor: 'lock:b', client },
        ],
      });
    });

    it('once, and follows it no more while the deadlock is confirmed', async () => {
      const { two } = await deadlock();
      await runtime.advance(1_260);
      expect(two.refused).toEqual([]);
      read.length = 0;
      await runtime.advance(250);
      // The first wait is followed, and the second one is not.
      expect(read).toEqual(['b']);
      await runtime.advance(300);
      expect(two.refused).toHaveLength(1);
    });

    it('of another service of the same backend, too', async () => {
      const other = new DeadlockDetector(
        waits,
        runtime,
        'other',
        async () => undefined,
        () => {},
      );
      const { one, two } = await deadlock(other);
      await runtime.advance(2_000);
      expect([one.refused, two.refused]).toEqual([[], [expect.any(LockDeadlockError)]]);
    });

    it('not if the other one has ended meanwhile', async () => {
      const { one, two } = await deadlock();
      await runtime.advance(1_600);
      one.waiter.settled = true;
      await runtime.advance(1_000);
      expect([one.refused, two.refused]).toEqual([[], []]);
    });

    it('not if the other one ends while the processes are looked up', async () => {
      const known = latch();
      const slow = new DeadlockDetector(
        waits,
        runtime,
        'client',
        async () => {
          await known.promise;
          return undefined;
        },
        () => {},
      );
      holders.set('lock:a', ['a']).set('lock:b', ['b']);
      const one = begin('a', 'lock:b', { by: slow });
      await runtime.advance(10);
      const two = begin('b', 'lock:a', { by: slow });
      await runtime.advance(3_000);
      one.waiter.settled = true;
      known.open();
      await runtime.settle();
      expect(two.refused).toEqual([]);
    });

    it('not when the service was closed', async () => {
      const { two } = await deadlock();
      await runtime.advance(1_300);
      detector.close();
      await runtime.advance(3_000);
      expect(two.refused).toEqual([]);
    });

    it('later if the processes could not be looked up', async () => {
      let fails = true;
      const failing = new DeadlockDetector(
        waits,
        runtime,
        'client',
        () => (fails ? Promise.reject(new Error('no answer')) : Promise.resolve(undefined)),
        () => {},
      );
      holders.set('lock:a', ['a']).set('lock:b', ['b']);
      begin('a', 'lock:b', { by: failing });
      await runtime.advance(10);
      const two = begin('b', 'lock:a', { by: failing });
      await runtime.advance(2_000);
      expect(two.refused).toEqual([]);
      fails = false;
      await runtime.advance(2_000);
      expect(two.refused).toHaveLength(1);
    });
  });
});
