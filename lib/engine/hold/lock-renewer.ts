import { BackendError, type HeldType, type LockBackend, type RenewRequest } from '../../backends/lock-backend.js';
import type { EventHub } from '../events/event-hub.js';
import { announceRenewalFailed, eventOf } from '../events/lease-events.js';
import type { HeldLock } from './held-lock.js';
import { type Loss, lockLostError } from './loss-reasons.js';
import type { KeptLeases } from './standby.js';
import type { Renewer } from './watchdog.js';

/**
 * Renews the locks of one service. Each lock has its own request. The backend sends the requests of one tick together.
 */
export class LockRenewer implements Renewer<HeldLock> {
  /** Renewals are failing, and a warning was logged. */
  private failing = false;

  constructor(
    private readonly backend: LockBackend,
    private readonly events: EventHub,
  ) {}

  renew(held: HeldLock, leaseTime: number): Promise<boolean> {
    held.commandSent();
    return this.backend.renew(new Renewal(held, leaseTime));
  }

  answered(held: HeldLock, failed: boolean): void {
    held.commandSettled();
    if (!failed) this.failing = false;
  }

  async remaining(held: HeldLock): Promise<number | undefined> {
    const { owners, possibleOwners } = await this.backend.inspect(held.key);
    if (possibleOwners?.includes(held.owner)) throw tooFewAnswers(this.backend, held);
    return owners.find(({ owner }) => owner === held.owner)?.remaining;
  }

  renewed(held: HeldLock): void {
    if (this.events.hasListener('renewed')) this.events.emit('renewed', eventOf(held));
  }

  failed(held: HeldLock, remainingTime: number, error: Error): void {
    const warning = `Could not renew the lock '${held.name}'; retrying until its lease ends in ${remainingTime} ms: ${error.message}`;
    if (!this.failing) this.events.logger.warn(warning);
    this.failing = true;
    announceRenewalFailed(this.events, held, remainingTime, error);
  }

  lost(held: HeldLock, loss: Loss): void {
    held.lose(lockLostError(held.name, loss));
  }

  kept(blockedFor: number, { count, remainingTime }: KeptLeases): void {
    if (this.events.hasListener('blocked')) this.events.emit('blocked', { blockedFor, kept: count, remainingTime });
  }

  warn(message: string): void {
    this.events.logger.warn(message);
  }
}

/** A class, because each lock needs one every ten seconds: see docs/internals/decisions/classes-on-the-hot-path.md. */
class Renewal implements RenewRequest {
  readonly key: string;
  readonly type: HeldType;
  readonly owner: string;

  constructor(
    { key, type, owner }: HeldLock,
    readonly leaseTime: number,
  ) {
    this.key = key;
    this.type = type;
    this.owner = owner;
  }
}

function tooFewAnswers({ description }: LockBackend, { name }: HeldLock): BackendError {
  return new BackendError(
    `${description}: too few nodes answered to know who holds '${name}'`,
    'unavailable',
    'unknown',
  );
}
