import type { SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { LockLostError } from '../errors.js';
import { type Loss, permitLostError } from '../hold/loss-reasons.js';
import type { Renewable, RenewalList } from '../hold/renewal-list.js';
import type { Standby } from '../hold/standby.js';
import { type Renewer, Watchdog } from '../hold/watchdog.js';
import type { Services } from '../services.js';
import type { Moment } from '../time/lease-clock.js';
import type { Synchronizer } from './synchronizer.js';

/** The fields that the events of all permits have in common. */
const PERMIT = { type: 'semaphore', group: '', method: '' } as const;

/** A permit that this process renews until it is released. */
class RenewedPermit implements Renewable<RenewedPermit> {
  readonly type = 'semaphore';
  readonly fixed = false;
  standby: Standby | undefined = undefined;
  slot = -1;
  validFor: number;
  lost: LockLostError | undefined;
  /** Called when the permit is lost. */
  onLost: ((loss: LockLostError) => void) | undefined;
  list: RenewalList<RenewedPermit> | undefined;
  earlier: RenewedPermit | undefined;
  later: RenewedPermit | undefined;

  constructor(
    readonly siblings: PermitsOfSemaphore,
    readonly id: string,
    readonly leaseTime: number,
    private lastConfirmed: Moment,
  ) {
    this.validFor = leaseTime;
  }

  get name(): string {
    return this.siblings.semaphore.name;
  }

  get key(): string {
    return this.siblings.semaphore.key;
  }

  get owner(): string {
    return this.id;
  }

  get confirmed(): Moment {
    if (this.standby !== undefined) this.standby.catchUp(this);
    return this.lastConfirmed;
  }

  get leaseEnd(): number {
    return this.confirmed.monotonic + this.validFor;
  }

  confirm(sent: Moment, leaseTime: number): void {
    this.lastConfirmed = sent;
    this.validFor = leaseTime;
  }
}

const NONE: ReadonlySet<never> = new Set();

/** How many permits one request renews at most. */
const LARGEST_REQUEST = 512;

/** One request for several permits. */
interface PermitRenewal {
  readonly permits: RenewedPermit[];
  /** The permits that the backend holds. */
  readonly held: Promise<ReadonlySet<RenewedPermit>>;
}

/** The permits of one semaphore that this process renews. */
class PermitsOfSemaphore {
  readonly byId = new Map<string, RenewedPermit>();
  /** The request that is sent next, to which permits may be added. */
  next: PermitRenewal | undefined;
  /** Settles with the last request. */
  lastRequest: Promise<unknown> = Promise.resolve();
  /** Whether the last renewal failed. A warning was then logged. */
  failing = false;

  constructor(readonly semaphore: Synchronizer) {}
}

/**
 * Renews the permits that this process acquired without a leaseTime, until they are released. The permits of one
 * semaphore are renewed together, one request after another. The loss of a permit is emitted as
 * an event.
 */
export class RenewedPermits implements Renewer<RenewedPermit> {
  private readonly semaphores = new Map<string, PermitsOfSemaphore>();
  private readonly watchdog: Watchdog<RenewedPermit>;

  /** @param onEmpty called when no permit is left to renew */
  constructor(
    private readonly backend: () => SynchronizerBackend,
    private readonly services: Pick<Services, 'clock' | 'events' | 'presence' | 'runtime' | 'standby' | 'watchdogs'>,
    readonly leaseTime: number,
    private readonly onEmpty: () => void,
  ) {
    const { runtime, clock, presence, standby, watchdogs } = services;
    this.watchdog = new Watchdog(runtime, clock, this, leaseTime, () => presence.noticed(0), standby);
    watchdogs.add(this.watchdog);
  }

  get size(): number {
    return [...this.semaphores.values()].reduce((sum, { byId }) => sum + byId.size, 0);
  }

  /** Whether permits of the semaphore with this key are renewed. */
  includes(key: string): boolean {
    return this.semaphores.has(key);
  }

  get isEmpty(): boolean {
    return this.semaphores.size === 0;
  }

  /** Renews these permits from now on. `sent` is the moment before their lease was set. */
  add(semaphore: Synchronizer, ids: readonly string[], sent: Moment): readonly RenewedPermit[] {
    const siblings = this.semaphores.get(semaphore.key) ?? new PermitsOfSemaphore(semaphore);
    this.semaphores.set(semaphore.key, siblings);
    const now = this.services.clock.now();
    return ids.map((id) => {
      const permit = new RenewedPermit(siblings, id, this.leaseTime, sent);
      siblings.byId.set(id, permit);
      this.watchdog.guard(permit, now);
      return permit;
    });
  }

  /** Calls `onLost` when this permit, which was just added, is lost. */
  watch({ key }: Synchronizer, id: string, onLost: (loss: LockLostError) => void): void {
    const permit = this.semaphores.get(key)?.byId.get(id);
    if (permit !== undefined) permit.onLost = onLost;
  }

  /** Stops renewing these permits, because they are released. */
  remove({ key }: Synchronizer, ids: readonly string[]): void {
    for (const id of ids) {
      const permit = this.semaphores.get(key)?.byId.get(id);
      if (permit !== undefined) this.forget(permit);
    }
  }

  /**
   * Stops renewing a permit while `setLease` gives it another lease. If that fails, the permit's lease is unknown, so
   * it is renewed again, the first time at once.
   */
  async replaceRenewal<T>(semaphore: Synchronizer, id: string, setLease: () => Promise<T>): Promise<T> {
    const permit = this.semaphores.get(semaphore.key)?.byId.get(id);
    // The lease may become shorter.
    const withdrawn = permit && this.services.standby?.withdraw(permit);
    if (permit !== undefined) this.forget(permit);
    try {
      if (withdrawn !== undefined) await withdrawn;
      return await setLease();
    } catch (error) {
      if (permit !== undefined) this.watchdog.renewNow(this.add(semaphore, [id], permit.confirmed)[0]);
      throw error;
    }
  }

  /** Shutdown: stops renewing. @returns for each semaphore, how many permits are still held */
  close(): readonly { readonly semaphore: Synchronizer; readonly count: number }[] {
    const all = [...this.semaphores.values()];
    this.watchdog.close();
    for (const { byId } of all) for (const permit of byId.values()) this.watchdog.drop(permit);
    this.semaphores.clear();
    return all.map(({ semaphore, byId }) => ({ semaphore, count: byId.size }));
  }

  // ── For the watchdog: see Renewer ──────────────────────────────────────────────────────────────────────────────────

  renew(permit: RenewedPermit): Promise<boolean> {
    const { siblings } = permit;
    const request = siblings.next ?? this.nextRequest(siblings);
    request.permits.push(permit);
    if (request.permits.length === LARGEST_REQUEST) siblings.next = undefined;
    return request.held.then((held) => held.has(permit));
  }

  /** Begins a request, which is sent when the one before was answered. */
  private nextRequest(siblings: PermitsOfSemaphore): PermitRenewal {
    const permits: RenewedPermit[] = [];
    const held = siblings.lastRequest.then(() => {
      if (siblings.next === request) siblings.next = undefined;
      return this.send(siblings, permits);
    });
    const request = { permits, held };
    siblings.next = request;
    siblings.lastRequest = held.catch(() => {});
    this.fill(siblings);
    return request;
  }

  /** Renews others early that can share a request, so that permits that were acquired one by one are renewed together. */
  private fill({ byId }: PermitsOfSemaphore): void {
    const { clock } = this.services;
    const now = clock.now();
    let room = LARGEST_REQUEST - 1;
    for (const permit of byId.values()) {
      if (room === 0) return;
      if (clock.age(permit.confirmed, now) >= this.leaseTime / 6 && this.watchdog.renewEarly(permit)) room--;
    }
  }

  renewed({ siblings: { semaphore }, id }: RenewedPermit): void {
    const { events } = this.services;
    if (events.hasListener('renewed')) events.emit('renewed', { ...PERMIT, name: semaphore.name, owner: id });
  }

  failed({ siblings, id }: RenewedPermit, remainingTime: number, error: Error): void {
    const { events } = this.services;
    const { name, what } = siblings.semaphore;
    if (!siblings.failing)
      events.logger.warn(`Renewing permits of ${what} failed and is retried until their leases end: ${error.message}`);
    siblings.failing = true;
    if (events.hasListener('renewalFailed'))
      events.emit('renewalFailed', { ...PERMIT, name, owner: id, remainingTime, error });
  }

  warn(message: string): void {
    this.services.events.logger.warn(message);
  }

  lost(permit: RenewedPermit, loss: Loss): void {
    const { name, what } = permit.siblings.semaphore;
    permit.lost = permitLostError(what, name, loss);
    this.forget(permit);
    permit.onLost?.(permit.lost);
    this.services.events.emit('lost', { ...PERMIT, name, owner: permit.id, held: undefined, error: permit.lost });
  }

  private async send(
    siblings: PermitsOfSemaphore,
    permits: readonly RenewedPermit[],
  ): Promise<ReadonlySet<RenewedPermit>> {
    const { semaphore, byId } = siblings;
    // Permits that were removed while the previous request was under way may have another lease by now.
    const wanted = permits.filter((permit) => byId.get(permit.id) === permit);
    if (wanted.length === 0) return NONE;
    const ids = wanted.map(({ id }) => id);
    const areHeld = await this.backend().renewPermits(semaphore.key, ids, this.leaseTime);
    siblings.failing = false;
    return new Set(wanted.filter((_, index) => areHeld[index]));
  }

  private forget(permit: RenewedPermit): void {
    const { byId, semaphore } = permit.siblings;
    this.watchdog.drop(permit);
    byId.delete(permit.id);
    if (byId.size > 0) return;
    this.semaphores.delete(semaphore.key);
    if (!this.isEmpty) return;
    this.watchdog.stopIfIdle();
    this.onEmpty();
  }
}
