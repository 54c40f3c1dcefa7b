import type { LockBackend } from '../backends/lock-backend.js';
import type { Runtime, Timer } from '../backends/runtime.js';
import type { AcquisitionContext } from './acquisition-context.js';
import type { ActiveWork } from './active-work.js';
import { LockAbortedError } from './errors.js';
import type { LockLogger } from './events/lock-logger.js';
import type { Synchronizers } from './permits/synchronizers.js';
import { inScopeOf } from './scope/lock-scope.js';
import { shutdownError } from './waiting/wait-errors.js';

/** At most so much of the last commandTimeout is kept for closing connections, in milliseconds. */
const LONGEST_CLOSE = 500;

/** What shutdown ends. */
export interface ShutdownTarget {
  readonly context: Pick<AcquisitionContext, 'presence'>;
  readonly work: ActiveWork;
  readonly synchronizers: Synchronizers;
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly logger: LockLogger;
  readonly shutdownTimeout: number;
  readonly commandTimeout: number;
  /** Stops what works in the background. */
  readonly stop: () => void;
}

/** Ends a service in order: no new work, then a limited time for what holds a lock, then the end of the rest. */
export class Shutdown {
  private closing = false;
  /** Bodies that still run get no more locks, either. */
  private aborted = false;
  /** When it stops waiting for bodies. */
  private drainUntil = 0;
  private drained: Promise<void> | undefined;
  private closed: Promise<void> | undefined;

  constructor(private readonly target: ShutdownTarget) {}

  /**
   * Whether the caller runs in a live scope of this service: it may acquire what it needs in order to end, also during shutdown.
   *
   * @param hasScope the caller runs in a scope, of any service
   * @throws LockAbortedError for any other caller once shutdown has begun
   */
  admit(what: string, name: string, hasScope: boolean): boolean {
    const scoped = hasScope && inScopeOf(this.target.context);
    if (this.closing && (!scoped || this.aborted)) throw shutdownError(what, name);
    return scoped;
  }

  drain(): Promise<void> {
    this.drained ??= this.waitForBodies().then(() => this.abortTheRest());
    return this.drained;
  }

  close(): Promise<void> {
    this.closed ??= this.drain().then(() => this.end());
    return this.closed;
  }

  private async waitForBodies(): Promise<void> {
    const { work, synchronizers, runtime, shutdownTimeout } = this.target;
    this.closing = true;
    this.drainUntil = runtime.monotonic() + shutdownTimeout;
    this.rejectWaiters(({ scoped }) => !scoped);
    synchronizers.rejectWaiters();
    await this.until(() => work.isIdle && synchronizers.permitWatchdog.isEmpty, shutdownTimeout);
  }

  private abortTheRest(): void {
    const { work, logger, shutdownTimeout } = this.target;
    this.aborted = true;
    this.rejectWaiters(() => true);
    const leases = [...work.leases];
    if (leases.length === 0) return;
    const names = leases.map((lease) => lease.name);
    logger.warn(
      `Shutdown: ${names.length} lock${names.length > 1 ? 's are' : ' is'} still held after ${shutdownTimeout} ms (${names.slice(0, 10).join(', ')}); the bodies are told to stop, the locks lapse with their leases`,
    );
    for (const lease of leases) {
      work.leases.remove(lease);
      const message = `Shutdown stopped waiting for the body that holds '${lease.name}'`;
      lease.abort(new LockAbortedError(message, lease.name));
    }
  }

  private rejectWaiters(whom: (caller: { readonly scoped: boolean }) => boolean): void {
    const { queues, several } = this.target.work;
    for (const queue of queues.values()) queue.rejectWaiters(whom);
    for (const caller of several) if (whom(caller)) caller.refuse(shutdownError('Waiting', caller.name));
  }

  private async end(): Promise<void> {
    const { backend, commandTimeout, context, runtime, stop, synchronizers } = this.target;
    const end = Math.max(this.drainUntil, runtime.monotonic()) + commandTimeout;
    const time = end - Math.min(LONGEST_CLOSE, commandTimeout / 4) - runtime.monotonic();
    await this.atMost(time, Promise.all([this.waitForAnswers(time), synchronizers.close(), context.presence.leave()]));
    synchronizers.abandon();
    stop();
    await this.atMost(end - runtime.monotonic(), backend.close());
  }

  /** Acquisitions whose callers are gone give back what they get: that must not find the backend closed. */
  private waitForAnswers(time: number): Promise<void> {
    return this.until(() => this.target.work.hasNoQueues, time);
  }

  /** Waits for a condition on what is in hand, for so many milliseconds at most. */
  private async until(condition: () => boolean, time: number): Promise<void> {
    if (condition()) return;
    const { work, runtime } = this.target;
    let unwatch = () => {};
    await new Promise<void>((resolve) => {
      const timer = runtime.timer(time, resolve, 'keep-alive');
      unwatch = work.watch(() => {
        if (!condition()) return;
        timer.cancel();
        resolve();
      });
    });
    unwatch();
  }

  private async atMost(time: number, work: Promise<unknown>): Promise<void> {
    let timer: Timer | undefined;
    const over = new Promise<void>((resolve) => {
      timer = this.target.runtime.timer(Math.max(0, time), resolve, 'keep-alive');
    });
    await Promise.race([work, over]).finally(() => timer?.cancel());
  }
}
