import { BackendError, type LockBackend, noAnswer, type OwnerRef, withReason } from '../lock-backend.js';
import { deadlineTimer, type Runtime, type Timer } from '../runtime.js';

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 2_000;

/** Something that one node is asked. */
export interface Question<T> {
  /** The answer; a rejection when there is none in time. */
  readonly inTime: Promise<T>;
  /** The answer, however late. */
  readonly settled: Promise<T>;
}

/** What is known of an acquisition on one node. */
export interface Granting {
  /** The node has granted it, or may have. */
  readonly possible: boolean;
  /** Until this time of the node's clock, it may still do so. */
  readonly validUntil?: number;
}

type Command<T> = (backend: LockBackend) => Promise<T>;

/**
 * One of the independent masters of a quorum. Nobody waits for it longer than their patience. What it is told about one owner
 * goes out in order, each command after the answer to the one before it: so an acquisition that is answered late can be
 * taken back, and is not mistaken for a later one.
 */
export class QuorumNode {
  /** The last command about each owner of a lock, while it is not answered. */
  private readonly lines = new Map<string, Promise<unknown>>();
  /** Releases that failed and will be tried again. */
  private readonly retries = new Map<string, Timer>();
  private closed = false;

  constructor(
    readonly backend: LockBackend,
    private readonly runtime: Runtime,
  ) {}

  /** Asks what concerns no owner. */
  ask<T>(patience: number, command: Command<T>): Question<T> {
    return this.within(patience, command(this.backend));
  }

  /** Tells it something about owners, in turn; nothing when their turn comes too late. */
  tell<T>(owners: readonly OwnerRef[], patience: number, command: Command<T>): Question<T> {
    const deadline = this.runtime.monotonic() + patience;
    const late = () => this.runtime.monotonic() >= deadline;
    const work = () => (late() ? Promise.reject(this.silence(patience)) : command(this.backend));
    return this.within(patience, this.inTurn(owners.map(idOf), work));
  }

  /** As {@link tell}, for owners that may be there from now on: what was still to be released of them is not. */
  acquire<T>(owners: readonly OwnerRef[], patience: number, command: Command<T>): Question<T> {
    for (const owner of owners) this.forgetRetry(idOf(owner));
    return this.tell(owners, patience, command);
  }

  /** As {@link acquire}, for an owner that should be there and is not; unless something newer is under way about it. */
  restore<T>(owner: OwnerRef, patience: number, command: Command<T>): void {
    if (this.lines.has(idOf(owner))) return;
    this.acquire([owner], patience, command).inTime.catch(() => {});
  }

  /** Releases in turn, however late that is; where it fails, again and again for `trials` milliseconds. */
  release<T>(owner: OwnerRef, patience: number, trials: number, command: Command<T>): Question<T> {
    return this.within(patience, this.deliver(idOf(owner), trials, FIRST_PAUSE, command));
  }

  /** Takes back an acquisition that nobody wants any more, if the node has granted it, or may still do so. */
  takeBack(owner: OwnerRef, granted: Promise<Granting>, trials: number, quietly: boolean): void {
    const command = async (backend: LockBackend) => {
      const { possible, validUntil } = await granted;
      if (!possible) return;
      const { released, at } = await backend.release({ ...owner, quietly });
      if (validUntil !== undefined && (released || (at !== undefined && at <= validUntil)))
        throw new BackendError(
          `${backend.description}: the acquisition may still be executed`,
          'unavailable',
          'unknown',
        );
    };
    this.deliver(idOf(owner), trials, FIRST_PAUSE, command).catch(() => {});
  }

  removeWaiter(place: OwnerRef, patience: number): Question<void> {
    return this.tell([place], patience, (backend) => backend.removeWaiter(place));
  }

  /** Settles when all that is under way now was answered. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.lines.values());
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const retry of this.retries.values()) retry.cancel();
    this.retries.clear();
    await this.backend.close();
  }

  private inTurn<T>(ids: readonly string[], work: () => Promise<T>): Promise<T> {
    const before = ids.flatMap((id) => this.lines.get(id) ?? []);
    const reply = before.length === 0 ? work() : Promise.allSettled(before).then(work);
    for (const id of ids) this.lines.set(id, reply);
    const leave = () => {
      for (const id of ids) if (this.lines.get(id) === reply) this.lines.delete(id);
    };
    reply.then(leave, leave);
    return reply;
  }

  private deliver<T>(id: string, trials: number, pause: number, command: Command<T>): Promise<T> {
    const reply = this.inTurn([id], () => command(this.backend));
    reply.catch(({ kind }: BackendError) => {
      // Whoever stands in line behind it has newer orders.
      const outdated = this.closed || this.lines.has(id);
      if (outdated || kind !== 'unavailable' || trials < pause) return;
      const again = () => {
        this.retries.delete(id);
        this.deliver(id, trials - pause, Math.min(pause * 2, LONGEST_PAUSE), command).catch(() => {});
      };
      this.forgetRetry(id);
      this.retries.set(id, this.runtime.timer(pause, again));
    });
    return reply;
  }

  private forgetRetry(id: string): void {
    this.retries.get(id)?.cancel();
    this.retries.delete(id);
  }

  private within<T>(patience: number, settled: Promise<T>): Question<T> {
    const inTime = new Promise<T>((resolve, reject) => {
      const timer = deadlineTimer(this.runtime, patience, () => reject(this.silence(patience)));
      settled.then(resolve, (error) => reject(withReason(this.backend, error))).finally(() => timer.cancel());
    });
    return { inTime, settled };
  }

  private silence(patience: number): BackendError {
    return noAnswer(this.backend, patience);
  }
}

function idOf({ key, type, owner }: OwnerRef): string {
  return `${owner} ${type} ${key}`;
}
