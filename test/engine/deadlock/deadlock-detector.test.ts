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
  beforeEach(() => {
    runtime = new VirtualRuntime();
    waits = new InProcessWaits(new WaitStore(), runtime.monotonic, runtime.monotonic, async () => []);
    detector = new DeadlockDetector(
      waits,
      runtime,
      'client',
      async () => undefined,
      () => {},
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
});
