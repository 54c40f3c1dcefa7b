import { BackendError, type LockBackend, type Subscription, type Wake } from '../../../../lib/backends/lock-backend.js';
import type {
  PermitCounts,
  RequestId,
  SynchronizerBackend,
  SynchronizerKind,
  TakenPermits,
} from '../../../../lib/backends/synchronizer-backend.js';
import type { SemaphoreType, SynchronizerState } from '../../../../lib/backends/synchronizer-state.js';
import type { SimulatedLink } from './simulated-link.js';
import { SimulatedSubscription } from './simulated-subscription.js';

/** Is notified of leases that were certainly set. They last until `deadline`, in virtual time. */
export type LeaseListener = (ids: readonly string[], deadline: number) => void;

/** Semaphores and latches behind a link. */
export class SimulatedSynchronizers implements SynchronizerBackend {
  onLease: LeaseListener = () => {};
  private readonly disguised = new Map<SynchronizerBackend, SynchronizerBackend>();

  constructor(
    private readonly link: SimulatedLink,
    private readonly disguise: (synchronizers: SynchronizerBackend) => SynchronizerBackend = (whole) => whole,
  ) {}

  takePermits(key: string, groups: readonly number[], request: RequestId, initial?: number): Promise<number> {
    return this.take(
      request,
      (there) => there.takePermits(key, groups, request, initial),
      (served) => served,
    );
  }

  drainPermits(key: string, request: RequestId): Promise<number> {
    return this.take(
      request,
      (there) => there.drainPermits(key, request),
      (drained) => drained,
    );
  }

  availablePermits(key: string): Promise<number> {
    return this.send('look', (there) => there.availablePermits(key));
  }

  addPermitsIfExists(key: string, permits: number, request: RequestId): Promise<boolean> {
    return this.send('change', (there) => there.addPermitsIfExists(key, permits, request));
  }

  addPermits(key: string, permits: number, request: RequestId, type?: SemaphoreType): Promise<void> {
    return this.send('change', (there) => there.addPermits(key, permits, request, type));
  }

  trySetPermits(key: string, permits: number, request: RequestId, type?: SemaphoreType): Promise<boolean> {
    return this.send('change', (there) => there.trySetPermits(key, permits, request, type));
  }

  async takeLeasedPermits(
    key: string,
    groups: readonly (readonly string[])[],
    leaseTime: number,
    request: RequestId,
    initial?: number,
  ): Promise<TakenPermits> {
    const deadline = this.deadline(leaseTime);
    for (const owner of groups.flat()) this.link.owners.acquiring({ key, owner });
    const taken = await this.take(
      request,
      (there) => there.takeLeasedPermits(key, groups, leaseTime, request, initial),
      ({ served }) => served,
    );
    this.onLease(groups.slice(0, taken.served).flat(), deadline);
    return taken;
  }

  giveLeasedPermits(key: string, ids: readonly string[], request: RequestId): Promise<readonly boolean[]> {
    for (const owner of ids) this.link.owners.givingBack({ key, owner });
    return this.send('change', (there) => there.giveLeasedPermits(key, ids, request));
  }

  async renewPermits(key: string, ids: readonly string[], leaseTime: number): Promise<readonly boolean[]> {
    const deadline = this.deadline(leaseTime);
    const there = await this.send('renew', (backend) => backend.renewPermits(key, ids, leaseTime));
    const renewed = ids.filter((_, index) => there[index]);
    this.onLease(renewed, deadline);
    return there;
  }

  setPermits(key: string, permits: number, request: RequestId): Promise<void> {
    return this.send('change', (there) => there.setPermits(key, permits, request));
  }

  countPermits(key: string): Promise<PermitCounts> {
    return this.send('look', (there) => there.countPermits(key));
  }

  trySetCount(key: string, count: number, request: RequestId): Promise<boolean> {
    return this.send('change', (there) => there.trySetCount(key, count, request));
  }

  countDown(key: string, steps: number, request: RequestId): Promise<void> {
    return this.send('change', (there) => there.countDown(key, steps, request));
  }

  getCount(key: string): Promise<number> {
    return this.send('look', (there) => there.getCount(key));
  }

  deleteLatch(key: string, request: RequestId): Promise<boolean> {
    return this.send('change', (there) => there.deleteLatch(key, request));
  }

  inspect(key: string): Promise<SynchronizerState | undefined> {
    return this.send('look', async (there) => there.inspect?.(key));
  }

  subscribe(key: string, kind: SynchronizerKind, listener: (wake: Wake) => void): Subscription {
    if (this.link.isClosed) return { ready: new Promise(() => {}), close: () => {} };
    const ask = (hear: (wake: Wake) => void) => this.reached(this.link.backend).subscribe(key, kind, hear);
    return new SimulatedSubscription(this.link, ask, listener, () => listener({ kind: 'resync' }));
  }

  private take<T>(
    { repeated }: RequestId,
    execute: (there: SynchronizerBackend) => Promise<T>,
    taken: (reply: T) => number,
  ): Promise<T> {
    // As in Redis, a request that was sent twice and took nothing is not remembered.
    const whenResent = (reply: T, validUntil: number | undefined) =>
      taken(reply) > 0 || repeated
        ? reply
        : new BackendError('it was sent twice', 'unavailable', 'unknown', { validUntil });
    return this.link.take('take', (backend) => execute(this.reached(backend)), whenResent);
  }

  private send<T>(line: string, execute: (there: SynchronizerBackend) => Promise<T>): Promise<T> {
    return this.link.send(line, (backend) => execute(this.reached(backend)));
  }

  private reached({ synchronizers }: LockBackend): SynchronizerBackend {
    if (synchronizers === undefined) throw new Error('the backend keeps no semaphores');
    const known = this.disguised.get(synchronizers) ?? this.disguise(synchronizers);
    this.disguised.set(synchronizers, known);
    return known;
  }

  /**
   * The end of the lease as the engine counts it: from before the command was sent, less the possible drift of the
   * clocks.
   */
  private deadline(leaseTime: number): number {
    return this.link.endOfLease(leaseTime);
  }
}
