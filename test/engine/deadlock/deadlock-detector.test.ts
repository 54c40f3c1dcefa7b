import { BackendError } from '../../../lib/backends/backend-error.js';
import { InProcessWaits, WaitStore } from '../../../lib/backends/in-process-waits.js';
import { DeadlockDetector } from '../../../lib/engine/deadlock/deadlock-detector.js';
import type { LockWaiter } from '../../../lib/engine/hold/held-lock.js';
import { LockScope, lockScopes, type ScopedLease } from '../../../lib/engine/scope/lock-scope.js';
import { ShareGates } from '../../../lib/engine/scope/share-gate.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

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
