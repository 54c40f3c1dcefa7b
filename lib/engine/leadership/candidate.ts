import { AsyncLocalStorage } from 'node:async_hooks';
import { printsAs } from '../../backends/prints-as.js';
import type { Timer } from '../../backends/runtime.js';
import { holdWhile } from '../body/hold-while.js';
import { LockAbortedError, LockConfigurationError, LockError } from '../errors.js';
import { describeThrown } from '../events/lock-logger.js';
import type { LockLease } from '../lease/lock-lease.js';
import { checkResult } from '../scope/body-result.js';
import { lockScopes } from '../scope/lock-scope.js';
import type { Services } from '../services.js';
import { FOREVER } from '../terms/duration.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { GROUP } from '../terms/lock-options.js';
import { checkOptions, FUNCTION, type OptionTable, rule } from '../terms/option-table.js';
import { RetryPause } from '../time/retry-pause.js';
import { settlesWithin } from '../time/settles-within.js';
import type { Leadership, LeadOptions } from './leadership.js';

/** The first pause before this process stands for election again, and the longest one, in milliseconds. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;
/** A warning is logged if the body still runs this many milliseconds after its signal was aborted. */
const PATIENCE = 10_000;
/** A warning is logged if the body returns within this many milliseconds so many times in a row. */
const QUICK = 1_000;
const QUICK_RETURNS = 3;

const OPTIONS: OptionTable<LeadOptions> = {
  onElected: rule('the function that runs while this process leads', (value) => typeof value === 'function'),
  onRevoked: FUNCTION,
  group: GROUP,
};

/** @throws LockConfigurationError naming the invalid option */
export function checkLeadOptions(options: LeadOptions, what: string): void {
  if (typeof options !== 'object' || options === null)
    throw new LockConfigurationError(`${what}: the options must be an object with onElected`);
  checkOptions(options, OPTIONS, what);
  if (options.onElected === undefined)
    throw new LockConfigurationError(`${what}: onElected must be the function that runs while this process leads`);
}

/** The call of `onRevoked` in which the caller runs: see {@link Candidate.waitsForCaller}. */
const revocations = new AsyncLocalStorage<object>();

/** Acquires the lock for one election. */
export type Acquire = (signal: AbortSignal) => Promise<LockLease>;

/** The time from an election to the end of the body. */
interface Term {
  readonly lease: LockLease;
  /** Whether `onElected` was called, but `onRevoked` was not called yet. */
  elected: boolean;
}

/**
 * Stands for election again and again: it waits for the lock, runs the body, gives the lock back, and pauses. Only
 * {@link stop} ends this loop. Errors do not end it. The next election begins when the last body has settled.
 */
export class Candidate implements Leadership {
  private term: Term | undefined;
  /** The call of `onRevoked` that has not settled. */
  private revocation: object | undefined;
  private stopping: Promise<void> | undefined;
  private readonly standing = new AbortController();
  private readonly pause: RetryPause;
  private running: Promise<void> | undefined;
  private quickReturns = 0;

  /**
   * @param shutdownTimeout how long {@link stop} waits for the body, in milliseconds
   * @param method `Class.method` of a decorated method; empty: `onElected` is a function of `lead()`
   */
  constructor(
    private readonly services: Pick<Services, 'events' | 'runtime' | 'standby' | 'work'>,
    readonly name: string,
    private readonly options: LeadOptions,
    private readonly acquire: Acquire,
    private readonly shutdownTimeout: number,
    readonly method = '',
  ) {
    this.pause = new RetryPause(services.runtime, FIRST_PAUSE, LONGEST_PAUSE);
  }

  get isLeader(): boolean {
    return this.stopping === undefined && this.term !== undefined && this.term.lease.held;
  }

  start(): void {
    const { runtime, work } = this.services;
    if (this.method !== '') this.warnOfNamesake();
    work.candidates.add(this);
    this.running = runtime.detached(() => this.run());
  }

  stop(): Promise<void> {
    // Assigned first, because aborting the signal runs code of the body, which may call stop() again.
    if (this.stopping === undefined) {
      let end = (_: Promise<void>) => {};
      this.stopping = new Promise((resolve) => {
        end = resolve;
      });
      end(this.services.runtime.detached(() => this.end()));
    }
    return this.waitsForCaller ? Promise.resolve() : this.stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  private async run(): Promise<void> {
    while (this.stopping === undefined) {
      await this.standForElection();
      if (this.stopping === undefined) await this.pause.sleep();
    }
  }

  private async standForElection(): Promise<void> {
    let lease: LockLease;
    try {
      lease = await this.acquire(this.standing.signal);
    } catch (error) {
      if (this.stopping === undefined) this.report('could not stand for election, and will try again', error);
      return;
    }
    const term: Term = { lease, elected: false };
    this.term = term;
    const { runtime } = this.services;
    const elected = runtime.monotonic();
    const unwatch = this.watch(lease);
    let hasReturned = false;
    try {
      await holdWhile(this.services, lease, () => this.lead(term));
      hasReturned = !lease.signal.aborted;
    } catch (error) {
      this.bodyFailed(lease, error);
    } finally {
      unwatch();
    }
    if (hasReturned && runtime.monotonic() - elected < QUICK) this.returnedQuickly();
    else this.quickReturns = 0;
    if (runtime.monotonic() - elected > LONGEST_PAUSE) this.pause.reset();
    await this.revoked(term);
  }

  private async lead(term: Term): Promise<void> {
    if (this.stopping !== undefined) return;
    const { lease } = term;
    term.elected = true;
    this.services.events.logger.log?.(`Now leads '${this.name}' with the fencing token ${lease.fencingToken}`);
    const result: unknown = await this.options.onElected(lease);
    checkResult(result, { what: this.body, body: this.options.onElected }, this.services.events);
  }

  /** A method that only starts something, as a constructor does, returns at once, and is called again and again. */
  private returnedQuickly(): void {
    if (++this.quickReturns !== QUICK_RETURNS) return;
    const { events } = this.services;
    const { body } = this;
    events.warnOnce(
      `a leader that returns: ${body}`,
      `${body} returned within ${QUICK / 1_000} s of its election ${QUICK_RETURNS} times in a row. This process leads '${this.name}' only while its promise is pending, then resigns and stands for election again. Let it run until lease.signal aborts. Work that ends needs @DistributedLock or withLock() instead. This is logged once`,
    );
  }

  /** As messages name the body. */
  private get body(): string {
    return this.method || `onElected of lead('${this.name}')`;
  }

  /** There is one leader, in this process as in all others, so one of two methods with the same name never runs. */
  private warnOfNamesake(): void {
    const { events, work } = this.services;
    for (const { name, method } of work.candidates) {
      if (name !== this.name || method === '' || method === this.method) continue;
      events.warnOnce(
        `leaders named ${name}`,
        `${this.method} and ${method} both have @Leader with the name '${name}'. A name has one leader, so one of them does not run as long as the other one leads. Give each method a name of its own. This is logged once`,
      );
      return;
    }
  }

  /** Warns when the body still runs long after its signal was aborted. */
  private watch({ signal }: LockLease): () => void {
    let timer: Timer | undefined;
    const { runtime, events } = this.services;
    const onAbort = () => {
      timer = runtime.timer(PATIENCE, () =>
        events.logger.warn(
          `The leader of '${this.name}' still runs ${PATIENCE / 1_000} s after its signal was aborted. This process does not stand for election again until it has ended. Let onElected return when lease.signal aborts`,
        ),
      );
    };
    signal.addEventListener('abort', onAbort, { once: true });
    return () => {
      signal.removeEventListener('abort', onAbort);
      timer?.cancel();
    };
  }

  private bodyFailed({ signal, loss }: LockLease, error: unknown): void {
    const wasAsked = error === signal.reason || (error as Error | undefined)?.name === 'AbortError';
    if (error === loss || (signal.aborted && wasAsked)) return;
    this.report('failed, and gives up the lock', error);
  }

  private async revoked(term: Term): Promise<void> {
    this.term = undefined;
    if (!term.elected) return;
    term.elected = false;
    this.services.events.logger.log?.(`No longer leads '${this.name}'`);
    const revocation = {};
    this.revocation = revocation;
    try {
      await revocations.run(revocation, async () => this.options.onRevoked?.());
    } catch (error) {
      this.report('failed in onRevoked', error);
    }
    this.revocation = undefined;
  }

  private async end(): Promise<void> {
    const { work } = this.services;
    const reason = new LockAbortedError(`The leadership of '${this.name}' was stopped`, this.name);
    this.standing.abort(reason);
    this.pause.wake();
    this.term?.lease.requestEnd(reason);
    if (!(await this.settlesInTime(this.running))) await this.abandon();
    work.candidateEnded(this);
  }

  /**
   * Stops waiting for the body, or for the answer to the release of its lock. A body may still be running, so its lock
   * is not released and lapses when its lease ends.
   */
  private async abandon(): Promise<void> {
    const { services, term } = this;
    if (term === undefined) return; // onRevoked takes long
    const { lease } = term;
    if (!lease.released) {
      services.events.logger.warn(
        `The leader of '${this.name}' still runs ${this.shutdownTimeout} ms after it was asked to stop. Its lock is not renewed any more, and ends with its lease`,
      );
      services.work.leases.remove(lease);
      lease.abort(lease.signal.reason as Error);
    }
    if (!(await this.settlesInTime(this.revoked(term))))
      services.events.logger.warn(
        `onRevoked of the leader of '${this.name}' still runs after ${this.shutdownTimeout} ms. stop() does not wait for it any longer`,
      );
  }

  private settlesInTime(work: Promise<void> | undefined): Promise<boolean> {
    return settlesWithin(this.shutdownTimeout, work, this.services.runtime);
  }

  /** Whether the caller runs in the body or in `onRevoked`, so that waiting for {@link stop} would be waiting for itself. */
  get waitsForCaller(): boolean {
    if (this.revocation !== undefined && revocations.getStore() === this.revocation) return true;
    for (let scope = lockScopes.getStore(); scope !== undefined; scope = scope.parent)
      if (scope.lease === this.term?.lease) return true;
    return false;
  }

  private report(what: string, error: unknown): void {
    const why = error instanceof Error ? error.message : describeThrown(error);
    const message = `The leader of '${this.name}' ${what}: ${why}`;
    this.services.events.emit('error', new LockError(message, this.name, { cause: error }));
  }
}

/** The terms of a process that waits until it is elected, however long that takes. */
export function standByTerms(terms: AcquisitionTerms): AcquisitionTerms {
  return { ...terms, waitTime: FOREVER, outageTimeout: FOREVER, onLost: 'throw', standsBy: true };
}

printsAs(Candidate, ({ name, isLeader }) => ({ name, isLeader }));
