import {
  type AcquireAllReply,
  type AcquireReply,
  type AcquireRequest,
  BackendError,
} from '../../backends/lock-backend.js';
import { PendingOwner } from '../lease/pending-acquisitions.js';
import type { LockAcquirer } from '../lock-acquirer.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import type { WantedLock } from './wanted-lock.js';

/** A lock that was not free, and what is known about its holder. */
export interface BusyLock {
  readonly wanted: WantedLock;
  readonly remaining: number;
  readonly holder: string | undefined;
}

/**
 * Tries to take several locks, or what is missing of them, without waiting. Each lock has a new owner id in each attempt, because a release
 * that arrives late would free what a later attempt has taken under the same id.
 */
export class SeveralAttempt {
  constructor(
    private readonly engine: LockAcquirer,
    private readonly all: readonly WantedLock[],
    private readonly terms: AcquisitionTerms,
  ) {}

  /**
   * Takes what is not held yet. What was taken before a busy lock was found stays taken: see {@link WantedLock.giveBack}.
   *
   * @returns the first lock that is busy
   * @throws BackendError, LockUpgradeError, LockConfigurationError
   */
  async takeMissing(): Promise<BusyLock | undefined> {
    const missing = this.all.filter(({ held }) => held === undefined);
    for (const wanted of missing) wanted.refreshReentry();
    for (const [i, wanted] of missing.entries()) {
      if (wanted.claim()) continue;
      for (const claimed of missing.slice(0, i)) claimed.unclaim();
      return { wanted, remaining: -1, holder: wanted.holder };
    }
    let busy: BusyLock | undefined;
    try {
      busy = await this.takeClaimed(missing.filter(({ shared }) => !shared));
      await Promise.all(this.all.map((wanted) => wanted.confirm()));
    } catch (error) {
      for (const wanted of missing) if (wanted.held === undefined) wanted.unclaim();
      throw error;
    }
    for (const wanted of missing) {
      if (wanted.held !== undefined) continue;
      if (busy !== undefined) wanted.unclaim();
      else wanted.share();
    }
    return busy;
  }

  private async takeClaimed(locks: readonly WantedLock[]): Promise<BusyLock | undefined> {
    const { backend, clock } = this.engine.context;
    const requests = locks.map(({ key }) => this.request(key));
    if (locks.length > 1 && this.terms.type !== 'fair' && backend.canAcquireTogether(requests.map(({ key }) => key))) {
      const sent = clock.now();
      const reply = await this.ask(backend.acquireAll(requests), requests);
      if (!reply.acquired) return { wanted: locks[reply.index], remaining: reply.remaining, holder: reply.holder };
      for (const [i, wanted] of locks.entries())
        wanted.fulfil(requests[i].owner, sent, reply.tokens[i], reply.validUntil);
      return undefined;
    }
    for (const [i, wanted] of locks.entries()) {
      const sent = clock.now();
      const reply = await this.ask(backend.acquire(requests[i]), [requests[i]]);
      if (!reply.acquired) return { wanted, remaining: reply.remaining, holder: reply.holder };
      wanted.fulfil(requests[i].owner, sent, reply.token, reply.validUntil);
    }
    return undefined;
  }

  private request(key: string): AcquireRequest {
    const { type, leaseTime } = this.terms;
    const { preferWriters } = this.engine.context;
    return { key, type, owner: this.engine.newOwner(), leaseTime, reserve: 0, fairWaitTimeout: 0, preferWriters };
  }

  /** Locks that may be acquired without our knowledge are released in the background. */
  private async ask<T extends AcquireReply | AcquireAllReply>(
    reply: Promise<T>,
    requests: readonly AcquireRequest[],
  ): Promise<T> {
    try {
      const answer = await this.whilePending(reply, requests);
      if (!answer.acquired && answer.validUntil !== undefined) this.releaseInBackground(requests, answer.validUntil);
      return answer;
    } catch (error) {
      const { outcome, validUntil } = error as BackendError;
      if (outcome !== 'refused') this.releaseInBackground(requests, validUntil);
      throw error;
    }
  }

  /** An acquisition that was released by force before its answer arrived has failed. */
  private async whilePending<T>(reply: Promise<T>, requests: readonly AcquireRequest[]): Promise<T> {
    const { pendingAcquisitions } = this.engine.context;
    const pending = requests.map(({ key, owner }) => new PendingOwner(key, owner));
    for (const acquisition of pending) pendingAcquisitions.begin(acquisition);
    const answer = await reply.finally(() => {
      for (const acquisition of pending) pendingAcquisitions.end(acquisition);
    });
    if (!pending.some(({ interference }) => interference === 'removed')) return answer;
    throw new BackendError('a lock was released by force while it was acquired', 'unavailable', 'unknown');
  }

  private releaseInBackground(requests: readonly AcquireRequest[], validUntil: number | undefined): void {
    const { backgroundReleases } = this.engine.context;
    for (const { key, type, owner, leaseTime } of requests)
      backgroundReleases.release({ key, type, owner, leaseTime, validUntil });
  }
}
