import type { BackendError } from '../../backends/lock-backend.js';
import type { Runtime, Timer } from '../../backends/runtime.js';
import type { LockLogger } from '../events/lock-logger.js';

/** How long locks are counted before the first line about them, in milliseconds. */
const COUNTED_FOR = 1_000;
/** The shortest time between two lines with the same cause, in milliseconds. */
const QUIET_TIME = 10_000;

/** Locks whose releases failed for one cause since the last line. */
interface Unreleased {
  count: number;
  /** One of them. */
  name: string;
  reason: string;
  /** When the last line was written, on the monotonic clock. */
  writtenAt: number;
  /** Writes the next line. */
  timer: Timer | undefined;
}

/**
 * Reports locks that could not be released: one line for each cause, with their number, because a cut connection
 * affects all releases that are under way.
 */
export class UnreleasedLocks {
  private readonly causes = new Map<BackendError['kind'], Unreleased>();
  private closed = false;

  constructor(
    private readonly runtime: Runtime,
    private readonly logger: LockLogger,
  ) {}

  add(name: string, { kind, message }: BackendError): void {
    const cause = this.causeOf(kind);
    if (cause.count++ > 0) return;
    cause.name = name;
    cause.reason = message;
    const pause = Math.max(COUNTED_FOR, cause.writtenAt + QUIET_TIME - this.runtime.monotonic());
    if (this.closed) this.runtime.nextTurn(() => this.write(cause));
    else cause.timer = this.runtime.timer(pause, () => this.write(cause));
  }

  /** Writes what has been counted. The process may be about to end. */
  close(): void {
    this.closed = true;
    for (const cause of this.causes.values()) {
      cause.timer?.cancel();
      this.write(cause);
    }
  }

  private causeOf(kind: BackendError['kind']): Unreleased {
    let cause = this.causes.get(kind);
    if (cause === undefined) {
      cause = { count: 0, name: '', reason: '', writtenAt: Number.NEGATIVE_INFINITY, timer: undefined };
      this.causes.set(kind, cause);
    }
    return cause;
  }

  private write(cause: Unreleased): void {
    const { count, name, reason } = cause;
    if (count === 0) return;
    cause.count = 0;
    cause.writtenAt = this.runtime.monotonic();
    this.logger.warn(
      count === 1
        ? `The lock '${name}' could not be released in time (${reason}); the release is retried in the background, and the lock lapses with its lease`
        : `${count} locks could not be released in time, one of them '${name}' (${reason}); the releases are retried in the background, and the locks lapse with their leases`,
    );
  }
}
