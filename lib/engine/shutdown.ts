import { LockAbortedError } from './errors.js';
import type { Synchronizers } from './permits/synchronizers.js';
import { leasesWaitingFor } from './scope/lock-scope.js';
import type { Services } from './services.js';
import { settlesWithin } from './wait/settles-within.js';
import { waitEndedError } from './wait/wait-errors.js';

/** How much of the last commandTimeout is reserved for closing connections at most, in milliseconds. */
const LONGEST_CLOSE = 500;

/** Ends a service in order: it admits no new work, waits a limited time for held locks, then ends everything else. */
export class Shutdown {
  /** When shutdown stops waiting for bodies. */
  private drainUntil = 0;
  private drained: Promise<void> | undefined;
  private closed: Promise<void> | undefined;

  /** Both time-outs are in milliseconds. */
  constructor(
    private readonly services: Services,
    private readonly synchronizers: Synchronizers,
    private readonly shutdownTimeout: number,
    private readonly commandTimeout: number,
  ) {}

  drain(): Promise<void> {
    this.drained ??= this.services.runtime.detached(() => this.waitForBodies().then(() => this.abortTheRest()));
    return this.unlessItWaitsForItself(this.drained);
  }

  close(): Promise<void> {
    this.closed ??= this.services.runtime.detached(() => this.drain().then(() => this.end()));
    return this.unlessItWaitsForItself(this.closed);
  }

  /**
   * A body that calls `close()`, for example by closing its application, would wait for its own end, and so would
   * `onRevoked` of a leader. It waits only for the others. When it has ended too, the rest of the shutdown follows.
   */
  private unlessItWaitsForItself(shutdown: Promise<void>): Promise<void> {
    const own = leasesWaitingFor(this.services);
    const isLeader = [...this.services.work.candidates].some(({ waitsForCaller }) => waitsForCaller);
    if (own.size === 0 && !isLeader) return shutdown;
    this.services.events.unawaited(shutdown);
    return this.until(
      () => this.services.admission.isClosed || this.services.work.isIdleBut(own),
      this.shutdownTimeout,
    );
  }

  private async waitForBodies(): Promise<void> {
    const { work, runtime, admission } = this.services;
    const { synchronizers, shutdownTimeout } = this;
    admission.isClosing = true;
    this.drainUntil = runtime.monotonic() + shutdownTimeout;
    // Leaders stop first, so that another process leads as soon as possible. Each waits at most shutdownTimeout for its
    // body.
    const stopped = Promise.all([...work.candidates].map((candidate) => candidate.stop()));
    this.rejectWaiters(({ scoped }) => !scoped);
    synchronizers.rejectWaiters();
    await this.until(() => work.isIdle && synchronizers.renewedPermits.isEmpty, shutdownTimeout);
    // Leaders may still be running onRevoked.
    await settlesWithin(this.drainUntil - runtime.monotonic(), stopped, runtime);
  }

  private abortTheRest(): void {
    const { work, events, admission } = this.services;
    admission.isClosed = true;
    this.rejectWaiters(() => true);
    const leases = [...work.leases];
    if (leases.length === 0) return;
    const names = leases.map((lease) => lease.name);
    events.logger.warn(
      `Shutdown: ${names.length} lock${names.length > 1 ? 's are' : ' is'} still held after ${this.shutdownTimeout} ms (${names.slice(0, 10).join(', ')}); their signals are aborted, and the locks end with their leases`,
    );
    for (const lease of leases) {
      work.leases.remove(lease);
      const message = `Shutdown stopped waiting for the body that holds '${lease.name}'`;
      lease.abort(new LockAbortedError(message, lease.name));
    }
  }

  private rejectWaiters(whom: (caller: { readonly scoped: boolean }) => boolean): void {
    const { queues, several } = this.services.work;
    for (const { line } of queues.values())
      line.refuseWhere((caller) => (whom(caller) ? waitEndedError(caller) : undefined));
    for (const locks of several) if (whom(locks)) locks.refuseWhere(waitEndedError);
  }

  private async end(): Promise<void> {
    const { backend, presence, runtime, work } = this.services;
    const { synchronizers, commandTimeout } = this;
    for (const queue of work.queues.values()) queue.endIfIdle();
    const end = Math.max(this.drainUntil, runtime.monotonic()) + commandTimeout;
    const time = end - Math.min(LONGEST_CLOSE, commandTimeout / 4) - runtime.monotonic();
    const answered = Promise.all([this.waitForAnswers(time), synchronizers.close(), presence.leave()]);
    await settlesWithin(time, answered, runtime);
    synchronizers.abandon();
    this.services.stop();
    await settlesWithin(end - runtime.monotonic(), backend.close(), runtime);
  }

  /**
   * Waits until acquisitions whose callers have left are answered and given back, and waiters are removed from the
   * backend. This needs an open backend.
   */
  private waitForAnswers(time: number): Promise<void> {
    return this.until(() => this.services.work.isAnswered, time);
  }

  /** Waits, at most `time` milliseconds, until a condition on the unfinished work holds. */
  private async until(condition: () => boolean, time: number): Promise<void> {
    if (condition()) return;
    const { work, runtime } = this.services;
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
}
