import { LockAbortedError } from './errors.js';
import { leasesWaitingFor, type ScopedLease } from './scope/lock-scope.js';
import type { Services } from './services.js';
import type { Synchronizers } from './synchronizers/synchronizers.js';
import { settlesWithin } from './time/settles-within.js';
import type { AwaitingQueue } from './wait/awaited.js';
import type { Caller } from './wait/caller.js';
import { waitEndedError } from './wait/wait-errors.js';

/** How much of the last commandTimeout is reserved for closing connections at most, in milliseconds. */
const LONGEST_CLOSE = 500;

/**
 * For how many turns of the event loop nothing has to be left before a service closes. What follows a body begins by
 * then, for example the next call of a loop.
 */
const QUIET_TURNS = 2;

/** Warnings name this many locks at most. */
const MOST_NAMES = 10;

/**
 * Ends a service in order, so that what was begun ends:
 *
 * 1. `begin`: the clock starts. Leaders step down, and locks are granted as ever.
 * 2. `settle`: those who hold or wait at this moment end. Nobody is refused.
 * 3. `drain`: callers that wait for another process are refused. All others are served, until nothing is held or waited
 *    for, or the clock has ended. Then everybody is refused, and what is still held lapses.
 * 4. `close`: what is unanswered is settled, and the backend is closed.
 *
 * If the clock ends before `drain`, the application still waits for its bodies. So their signals abort, and nobody waits
 * any more, but what is held is renewed, and what is free is granted.
 */
export class Shutdown {
  /** The end of the clock, on the monotonic clock. */
  private end: number | undefined;
  /** The leases of the body that has begun the shutdown, and may wait for itself. */
  private around: ReadonlySet<ScopedLease> = new Set();
  private hasWarned = false;
  private drained: Promise<void> | undefined;
  private closed: Promise<void> | undefined;
  private stopLimiting: () => void = () => {};

  /** Both time-outs are in milliseconds. */
  constructor(
    private readonly services: Services,
    private readonly synchronizers: Synchronizers,
    private readonly shutdownTimeout: number,
    private readonly commandTimeout: number,
  ) {}

  begin(): void {
    if (this.end !== undefined) return;
    const { work, runtime, admission } = this.services;
    admission.isEnding = true;
    this.end = runtime.monotonic() + this.shutdownTimeout;
    this.around = leasesWaitingFor(this.services);
    // Each waits for its body for as long as the clock runs.
    runtime.detached(() => {
      for (const candidate of work.candidates) this.services.events.unawaited(candidate.stop());
    });
    const timer = runtime.timer(this.shutdownTimeout, () => this.limit());
    this.stopLimiting = () => timer.cancel();
  }

  settle(): Promise<void> {
    this.begin();
    const leaders = [...this.services.work.candidates].filter(({ waitsForCaller }) => !waitsForCaller);
    return this.services.runtime.detached(() => this.untilBegunHasEnded(leaders));
  }

  drain(): Promise<void> {
    this.begin();
    this.drained ??= this.services.runtime.detached(() => this.untilNothingIsLeft().then(() => this.leaveTheRest()));
    return this.unlessItWaitsForItself(this.drained);
  }

  close(): Promise<void> {
    this.closed ??= this.services.runtime.detached(() => this.drain().then(() => this.closeBackend()));
    return this.unlessItWaitsForItself(this.closed);
  }

  private get timeLeft(): number {
    const { end = Number.POSITIVE_INFINITY } = this;
    return end - this.services.runtime.monotonic();
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

  // ── The clock has ended, and the application still waits for bodies ────────────────────────────────────────────────

  private limit(): void {
    const { work } = this.services;
    // Who asks is answered, and gets what is free.
    const refuseWaiters = () => this.refuse(({ awaited }) => awaited !== 'an answer');
    refuseWaiters();
    this.stopLimiting = work.watch(this.oncePerTurn(refuseWaiters));
    const [closer] = [...this.around].filter(({ released }) => !released);
    const remedy =
      closer === undefined
        ? ''
        : `. The body that holds '${closer.name}' has called app.close(). If it handles a request, NestJS waits for it, and it waits for NestJS: let it call app.close() without await`;
    this.warnOfHeld(
      `; their signals are aborted. They are renewed while the application waits for their bodies${remedy}`,
    );
    for (const lease of work.leases) lease.requestEnd(stoppedWaiting(lease.name));
  }

  /** Calls `listener` in the next turn of the event loop, however often the returned function is called until then. */
  private oncePerTurn(listener: () => void): () => void {
    let isDue = false;
    return () => {
      if (isDue) return;
      isDue = true;
      this.services.runtime.nextTurn(() => {
        isDue = false;
        if (!this.services.admission.isClosed) listener();
      });
    };
  }

  // ── The servers have answered, and what bodies use is not closed yet ───────────────────────────────────────────────

  /** What begins meanwhile is not waited for, because workers may fetch without end. */
  private async untilBegunHasEnded(leaders: readonly unknown[]): Promise<void> {
    const { work } = this.services;
    const { candidates }: { candidates: ReadonlySet<unknown> } = work;
    // Callers may wait for the body that has called app.close(), and waits for this.
    const callers = this.around.size === 0 ? [...this.callersToServe()] : [];
    await this.while(() => leaders.some((leader) => candidates.has(leader)));
    await this.while(() => {
      const waiting = this.callersToServe();
      return callers.some((caller) => waiting.has(caller));
    });
    await this.while(work.underWay(this.around));
  }

  /** Waits while a condition on the unfinished work holds, and the clock runs. */
  private async while(condition: () => boolean): Promise<void> {
    while (this.timeLeft > 0 && condition()) await this.change(this.timeLeft);
  }

  /** Those whom {@link drain} does not refuse. */
  private callersToServe(): Set<Caller<never>> {
    const callers = new Set<Caller<never>>();
    this.refuse((queue, caller) => {
      if (!isRefusedByDrain(queue, caller)) callers.add(caller);
      return false;
    });
    return callers;
  }

  // ── The last hook ──────────────────────────────────────────────────────────────────────────────────────────────────

  private async untilNothingIsLeft(): Promise<void> {
    const { admission, work } = this.services;
    this.stopLimiting();
    admission.isDraining = true;
    for (const queue of work.queues.values()) queue.endIfIdle();
    for (let quietTurns = 0; quietTurns < QUIET_TURNS && this.timeLeft > 0; ) {
      this.refuse(isRefusedByDrain);
      quietTurns = this.isIdle ? quietTurns + 1 : 0;
      if (quietTurns === 0) await this.change(this.timeLeft);
      await new Promise<void>((resolve) => {
        this.services.runtime.nextTurn(resolve);
      });
    }
  }

  private get isIdle(): boolean {
    const { work } = this.services;
    const isWaiting = !work.isEmpty || work.candidates.size > 0;
    return !isWaiting && work.isIdle && this.synchronizers.renewedPermits.isEmpty;
  }

  /** From now on, everybody is refused. */
  private leaveTheRest(): void {
    const { work, admission } = this.services;
    admission.isClosed = true;
    this.refuse(() => true);
    this.warnOfHeld(
      this.hasWarned
        ? ', and the application waits no longer. The locks are not renewed any more, and end with their leases'
        : '; their signals are aborted, and the locks end with their leases',
    );
    for (const lease of [...work.leases]) {
      work.leases.remove(lease);
      lease.abort(stoppedWaiting(lease.name));
    }
  }

  /** Refuses callers that wait. */
  private refuse(isMeant: (queue: AwaitingQueue, caller: Caller<never>) => boolean): void {
    this.services.work.forEach((queue) => {
      queue.refuseWhere((caller) => (isMeant(queue, caller) ? waitEndedError(caller) : undefined));
    });
  }

  private warnOfHeld(consequence: string): void {
    const { work, events } = this.services;
    const { length } = work.leases;
    if (length === 0) return;
    this.hasWarned = true;
    const names: string[] = [];
    for (const { name, hasBody } of work.leases) {
      if (names.length === MOST_NAMES) break;
      names.push(hasBody ? name : `${name} without a body, from acquire()`);
    }
    events.logger.warn(
      `Shutdown: ${length} lock${length > 1 ? 's are' : ' is'} still held after ${this.shutdownTimeout} ms (${names.join(', ')})${consequence}`,
    );
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────────────

  private async closeBackend(): Promise<void> {
    const { backend, presence, runtime, work } = this.services;
    const { synchronizers, commandTimeout } = this;
    for (const queue of work.queues.values()) queue.endIfIdle();
    const end = runtime.monotonic() + Math.max(0, this.timeLeft) + commandTimeout;
    const time = end - Math.min(LONGEST_CLOSE, commandTimeout / 4) - runtime.monotonic();
    // Acquisitions whose callers have left are answered and given back, and waiters are removed from the backend.
    const settled = this.until(() => work.isAnswered, time);
    const answered = Promise.all([settled, synchronizers.close(), presence.leave()]);
    await settlesWithin(time, answered, runtime);
    synchronizers.abandon();
    this.services.stop();
    await settlesWithin(end - runtime.monotonic(), backend.close(), runtime);
  }

  /** Waits, at most `time` milliseconds, until a condition on the unfinished work holds. */
  private async until(condition: () => boolean, time: number): Promise<void> {
    const { runtime } = this.services;
    const end = runtime.monotonic() + time;
    while (!condition() && runtime.monotonic() < end) await this.change(end - runtime.monotonic());
  }

  /** Waits, at most `time` milliseconds, for the next change of the unfinished work. */
  private async change(time: number): Promise<void> {
    const { work, runtime } = this.services;
    let unwatch = () => {};
    await new Promise<void>((resolve) => {
      const timer = runtime.timer(time, resolve, 'keep-alive');
      unwatch = work.watch(() => {
        timer.cancel();
        resolve();
      });
    });
    unwatch();
  }
}

function isRefusedByDrain({ awaited }: AwaitingQueue, { keepsWaiting }: Caller<never>): boolean {
  return awaited === 'another process' && !keepsWaiting;
}

function stoppedWaiting(name: string): LockAbortedError {
  return new LockAbortedError(`Shutdown stopped waiting for the body that holds '${name}'`, name);
}
