import { BackOff, FIRST_PAUSE } from '../back-off.js';
import { BackendError, noAnswer, withReason } from '../backend-error.js';
import type { OwnerRef } from '../lock-requests.js';
import { deadlineTimer, type Runtime, type Timer } from '../runtime.js';
import type { QuorumMember } from './quorum-member.js';

/** The longest pause, in milliseconds. */
const LONGEST_PAUSE = 2_000;
/** The longest time for which a copy of a command can be under way, in milliseconds. */
const LONGEST_DOUBT = 60_000;

/** A call to one node. */
export interface NodeCall<T> {
  /** The reply. Rejects if it does not arrive in time. */
  readonly inTime: Promise<T>;
  /** The reply, however late. */
  readonly settled: Promise<T>;
}

/** What is known about an acquisition on one node. */
export interface PossibleGrant {
  /** Whether the node granted it, or may have granted it. */
  readonly possible: boolean;
  /** The node may still grant it until this time on its clock. */
  readonly validUntil?: number | undefined;
}

type Command<T> = (backend: QuorumMember) => Promise<T>;

/** Until then, on the node's clock, the request, or another copy of it, may still be executed. */
interface Answer {
  readonly validUntil?: number | undefined;
}

/**
 * One of the independent masters of a quorum. No call waits for it longer than the time-out of the call. Commands about
 * one owner are sent in order, each after the reply to the one before, so that an acquisition that is answered late can
 * be revoked and is not mistaken for a later one.
 */
export class QuorumNode {
  /** The last unanswered command about each owner of a lock. */
  private readonly pending = new Map<string, Promise<unknown>>();
  /** Releases that failed and will be sent again. */
  private readonly retries = new Map<string, Timer>();
  /** For each owner whose acquisition may still be executed: until when, and when this process learned of it. */
  private readonly copies = new Map<string, { readonly validUntil: number; readonly since: number }>();
  private closed = false;

  constructor(
    readonly backend: QuorumMember,
    private readonly runtime: Runtime,
  ) {}

  /** Sends a command that concerns no owner. */
  ask<T>(timeout: number, command: Command<T>): NodeCall<T> {
    return this.withTimeout(timeout, command(this.backend));
  }

  /** Sends a command about owners, in order. The command is not sent if its time-out passes before its turn comes. */
  send<T>(owners: readonly OwnerRef[], timeout: number, command: Command<T>): NodeCall<T> {
    const deadline = this.runtime.monotonic() + timeout;
    const isLate = () => this.runtime.monotonic() >= deadline;
    const work = () => (isLate() ? Promise.reject(noAnswer(this.backend, timeout)) : command(this.backend));
    return this.withTimeout(timeout, this.inOrder(owners.map(idOf), work));
  }

  /**
   * Like {@link send}, for owners that are about to hold the lock. Releases of these owners that still had to be
   * repeated are cancelled.
   */
  acquire<T extends Answer>(owners: readonly OwnerRef[], timeout: number, command: Command<T>): NodeCall<T> {
    for (const owner of owners) this.cancelRetry(idOf(owner));
    const note = ({ validUntil }: Answer) => validUntil !== undefined && this.noteCopy(owners, validUntil);
    return this.send(owners, timeout, async (backend) => {
      try {
        const answer = await command(backend);
        note(answer);
        return answer;
      } catch (error) {
        if ((error as BackendError).outcome === 'unknown') note(error as BackendError);
        throw error;
      }
    });
  }

  /**
   * Like {@link acquire}, for an owner that should hold the lock on this node but does not. Does nothing if a newer
   * command about the owner is under way.
   */
  restore<T extends Answer>(owner: OwnerRef, timeout: number, command: Command<T>): void {
    if (this.pending.has(idOf(owner))) return;
    this.acquire([owner], timeout, command).inTime.catch(() => {});
  }

  /**
   * Sends a release, in order, however late that is. If it fails, it is repeated for `retryTime` milliseconds. If the
   * acquisition, or a copy of it, may still be executed, other releases follow.
   */
  release<T>(owner: OwnerRef, timeout: number, retryTime: number, command: Command<T>): NodeCall<T> {
    const id = idOf(owner);
    const released = this.sendRelease(id, retryTime, this.newBackOff(), async (backend) => {
      const reply = await command(backend);
      const copy = this.copies.get(id);
      this.copies.delete(id);
      if (copy !== undefined) this.revoke(owner, Promise.resolve({ ...copy, possible: true }), retryTime, true);
      return reply;
    });
    return this.withTimeout(timeout, released);
  }

  /** Releases an acquisition that is no longer needed, if the node has granted it or may still do so. */
  revoke(owner: OwnerRef, grant: Promise<PossibleGrant>, retryTime: number, quietly: boolean): void {
    const command = async (backend: QuorumMember) => {
      const { possible, validUntil } = await grant;
      if (!possible) return;
      const { released, at } = await backend.release({ ...owner, quietly });
      if (validUntil !== undefined && (released || (at !== undefined && at <= validUntil)))
        throw new BackendError(
          `${backend.description}: the acquisition may still be executed`,
          'unavailable',
          'unknown',
        );
    };
    this.sendRelease(idOf(owner), retryTime, this.newBackOff(), command).catch(() => {});
  }

  removeWaiter(waiter: OwnerRef, timeout: number): NodeCall<void> {
    return this.send([waiter], timeout, (backend) => backend.removeWaiter(waiter));
  }

  /** Settles when all commands that are under way now have been answered. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.pending.values());
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const retry of this.retries.values()) retry.cancel();
    this.retries.clear();
    await this.backend.close();
  }

  private noteCopy(owners: readonly OwnerRef[], validUntil: number): void {
    const since = this.runtime.monotonic();
    for (const [id, copy] of this.copies) if (since - copy.since > LONGEST_DOUBT) this.copies.delete(id);
    for (const owner of owners) this.copies.set(idOf(owner), { validUntil, since });
  }

  private inOrder<T>(ids: readonly string[], work: () => Promise<T>): Promise<T> {
    const before = ids.flatMap((id) => this.pending.get(id) ?? []);
    const reply = before.length === 0 ? work() : Promise.allSettled(before).then(work);
    for (const id of ids) this.pending.set(id, reply);
    const remove = () => {
      for (const id of ids) if (this.pending.get(id) === reply) this.pending.delete(id);
    };
    reply.then(remove, remove);
    return reply;
  }

  private sendRelease<T>(id: string, retryTime: number, backOff: BackOff, command: Command<T>): Promise<T> {
    const reply = this.inOrder([id], () => command(this.backend));
    reply.catch(({ kind }: BackendError) => {
      // A command that was sent after this one is newer.
      const isOutdated = this.closed || this.pending.has(id);
      const pause = backOff.next();
      if (isOutdated || kind !== 'unavailable' || retryTime < pause) return;
      const retry = () => {
        this.retries.delete(id);
        this.sendRelease(id, retryTime - pause, backOff, command).catch(() => {});
      };
      this.cancelRetry(id);
      this.retries.set(id, this.runtime.timer(pause, retry));
    });
    return reply;
  }

  private newBackOff(): BackOff {
    return new BackOff(this.runtime, FIRST_PAUSE, LONGEST_PAUSE);
  }

  private cancelRetry(id: string): void {
    this.retries.get(id)?.cancel();
    this.retries.delete(id);
  }

  private withTimeout<T>(timeout: number, settled: Promise<T>): NodeCall<T> {
    const inTime = new Promise<T>((resolve, reject) => {
      const timer = deadlineTimer(this.runtime, timeout, () => reject(noAnswer(this.backend, timeout)));
      settled.then(resolve, (error) => reject(withReason(this.backend, error))).finally(() => timer.cancel());
    });
    return { inTime, settled };
  }
}

function idOf({ key, type, owner }: OwnerRef): string {
  return `${owner} ${type} ${key}`;
}
