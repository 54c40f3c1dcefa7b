import type { LockBackend } from '../../backends/lock-backend.js';
import { LockLostError } from '../errors.js';
import type { EventHub } from '../events/events.js';
import type { LossReason, Renewer } from '../watchdog.js';
import type { HeldLock } from './held-lock.js';
import { announceRenewalFailed, eventOf } from './lease-events.js';

const REASONS: Record<LossReason, string> = {
  gone: 'it no longer existed at renewal (was it force-released or deleted, or did the backend lose its data?)',
  'gone-at-extension': 'it no longer existed when extend() was called',
  'gone-at-confirmation': 'it no longer existed when this process tried to confirm it',
  'gone-at-lookup': 'it no longer existed when it was looked up',
  ended: 'its lease ended',
  'ended-unnoticed': 'its lease ended while the machine was suspended or after its clock was changed',
  'too-late':
    'this process could not renew it before its lease ended (was the event loop blocked, or the machine suspended?)',
  'checked-too-late': 'its lease ended before this process checked it again (was the event loop blocked?)',
  unanswered: 'the backend did not confirm a renewal before the lease ended',
  failed: 'it could not be renewed before its lease ended',
};

/** Renews the locks of one service, each by its own request. The backend sends the requests of one tick together. */
export class LockRenewer implements Renewer<HeldLock> {
  /** The last renewal failed, and a warning was logged. */
  private failing = false;

  constructor(
    private readonly backend: LockBackend,
    private readonly events: EventHub,
  ) {}

  together(held: HeldLock): readonly HeldLock[] {
    return held.alone;
  }

  async renew([held]: readonly HeldLock[], leaseTime: number): Promise<readonly boolean[]> {
    const { key, type, owner } = held;
    held.commandSent();
    try {
      const isHeld = await this.backend.renew({ key, type, owner, leaseTime });
      this.failing = false;
      return [isHeld];
    } finally {
      held.commandSettled();
    }
  }

  async remaining(held: HeldLock): Promise<number | undefined> {
    const { owners } = await this.backend.inspect(held.key);
    return owners.find(({ owner }) => owner === held.owner)?.remaining;
  }

  renewed(held: HeldLock): void {
    if (this.events.hears('renewed')) this.events.emit('renewed', eventOf(held));
  }

  failed(held: HeldLock, remainingTime: number, error: Error): void {
    const warning = `Could not renew the lock '${held.name}'; retrying until its lease ends in ${remainingTime} ms: ${error.message}`;
    if (!this.failing) this.events.logger.warn(warning);
    this.failing = true;
    announceRenewalFailed(this.events, held, remainingTime, error);
  }

  lost(held: HeldLock, reason: LossReason, error?: Error): void {
    this.lose(held, error === undefined ? REASONS[reason] : `${REASONS[reason]}: ${error.message}`);
  }

  private lose(held: HeldLock, why: string): void {
    const advice = 'Another caller may hold it now: stop, or fence your writes with the token';
    held.lose(new LockLostError(`The lock '${held.name}' was lost: ${why}. ${advice}`, held.name));
  }
}
