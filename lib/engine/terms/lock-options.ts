import type { HeldType, LockType } from '../../backends/lock-backend.js';
import { LockConfigurationError } from '../errors.js';
import { type Duration, FOREVER, type Milliseconds, toFixedLease, toHoldLimit, toWaitTime } from './duration.js';
import {
  CHECKED_LATER,
  checkOptions,
  type OptionTable,
  oneOf,
  type RefusedOptions,
  rule,
  TRUE_OR_FALSE,
} from './option-table.js';
import type { WaitTerms } from './wait-terms.js';

/** Whether a call waits until Redis has confirmed its release. See {@link RunOptions.release}. @publicApi */
export type ReleaseMode = 'confirmed' | 'background';

/** Options of one acquisition. @publicApi */
export interface LockOptions {
  /**
   * How long to wait while another owner holds the lock, at most 2³¹ − 1 ms (24 days). With 0, the call tries once.
   * With `Infinity`, it waits forever. Default: the module's `waitTime`, which is `Infinity` unless set.
   */
  readonly waitTime?: Duration;
  /**
   * How long to wait while Redis does not answer before the call fails with LockUnavailableError. The time counts from
   * the first unanswered request, or from this call if that is later. With `Infinity`, the call waits until Redis
   * answers again. Default: the module's `outageTimeout`, 10 s. (`waitTime` limits the total wait for a busy lock and
   * for Redis.)
   */
  readonly outageTimeout?: Duration;
  /**
   * How long Redis keeps the lock, from 100 ms to 10 years. The watchdog never extends this time. Default: for as long
   * as the lock is held, renewed by the watchdog. A re-entry shares the lease of the outer lock. Its own leaseTime is
   * not applied, and a fixed outer lease ends for both. (The read lock of a writer is a separate lock with its own
   * lease.)
   */
  readonly leaseTime?: Duration;
  /** `'reentrant'` (default), `'fair'`, `'read'`, `'write'` or `'fenced'`: see {@link LockType}. */
  readonly type?: LockType;
  /**
   * How many callers may hold the lock at a time, in all processes: a whole number from 1 to 1,000. Each holder has a
   * lease, which is renewed, lost and released like that of any lock. If one ends, its place is free at once.
   *
   * The number is not stored. Each call is compared with those that hold the lock at that moment, so replicas may use
   * different numbers while a new version is deployed, and the number may depend on the caller. All users of the name
   * should set it, because without it the lock has one holder and excludes those who have it.
   *
   * It cannot be combined with `type`, several names, `minReplicas`, `quorum` or locks in SQL. Re-entry takes no second
   * place. Fencing tokens differ, but cannot fence off one of several holders: see docs/fencing-tokens.md. Default: one
   * holder.
   *
   * ```ts
   * await locks.withLock(`export:${tenant}`, { permits: 3, waitTime: '1m' }, () => exportAll(tenant));
   * ```
   */
  readonly permits?: number;
  /**
   * Whether only the newest caller waits for the lock, in all processes. A later call takes the place of the one that
   * waits, which fails with LockSupersededError at once. So at most one call holds the lock and one waits, and the
   * last call runs after all others were made. `lease.superseded` is how many calls it stands for.
   *
   * Nothing is stored: if the process of the last caller dies, nobody runs in its place; a shutdown waits for it for
   * `shutdownTimeout` at most. Nor does anybody
   * if its `waitTime` ends (LockBusyError) or its `signal` aborts. All users of the name should set it. A re-entry does
   * not wait, so it supersedes nobody. It cannot be combined with `type`, `permits`, `waitTime: 0`, several names,
   * `minReplicas`, `quorum` or locks in SQL. Default: false.
   *
   * ```ts
   * await locks.withLock('index', { newest: true }, () => rebuild());
   * ```
   */
  readonly newest?: boolean;
  /** Ends the wait with LockAbortedError. It does not affect a lease that was granted. */
  readonly signal?: AbortSignal;
  /**
   * Whether a caller that runs inside a lock may enter the same lock again. Node.js lets everything that is started
   * inside a lock inherit it, also a queue's job or an event's listener that does not belong to the holder. With
   * `false`, the call is treated as one from outside all locks: it has an owner id of its own, waits for whoever
   * holds the lock, is never refused with LockUpgradeError or LockDeadlockError, and its body sees no outer lock. It
   * waits forever if the code that holds the lock awaits it. Default: true.
   *
   * @see docs/queues-and-events.md
   */
  readonly reentry?: boolean;
  /**
   * The name of this acquisition in events, metrics and client records. It describes the purpose in at most 200
   * characters and, unlike the lock's name, is the same for all calls. Default: none. (A decorated method has one
   * automatically.)
   */
  readonly group?: string;
}

/** Options of a call that runs a body inside the lock: `withLock`. @publicApi */
export interface RunOptions extends LockOptions {
  /**
   * What happens when the lease is lost but the body succeeds. `'throw'`: the call fails with LockLostError. `'warn'`:
   * a warning is logged. Default: the module's `onLost`.
   */
  readonly onLost?: 'throw' | 'warn';
  /**
   * `'confirmed'`: the call settles when Redis has answered the release. `'background'`: it settles when the body has
   * ended, a round trip earlier, and the release follows with the requests of this tick. If Redis then reports that the lock was gone,
   * a `lost` event and a warning replace LockLostError. In other processes, `tryAcquire` and `onBusy: 'skip'` may find
   * the lock busy for one round trip longer; waiting callers are not delayed. It cannot be combined with an explicit
   * `onLost: 'throw'`, `minReplicas`, `quorum`, or row locks. Default: the module's `release`.
   */
  readonly release?: ReleaseMode;
  /**
   * How long the body may hold the lock, at most 24 days. After that time, its
   * `signal` aborts with LockAbortedError, and the lock is no longer renewed. It ends with its lease, or when the body
   * ends, because the body may still be running. A body that ends before its lease does returns its result; after that,
   * the call fails with LockLostError (see `onLost`). A re-entry only aborts its own signal. Default: no limit.
   */
  readonly holdAtMost?: Duration;
}

/** Options of `LockService.adopt`, with the same meaning as in {@link LockOptions}. @publicApi */
export type AdoptOptions = Pick<LockOptions, 'leaseTime' | 'outageTimeout' | 'group'>;

/** The known purpose of an acquisition: see `HoldRecord`. */
export interface Purpose {
  readonly group: string;
  readonly method: string;
  /** Whether the decorator's `onBusy` provides a result when the lock is busy, so that no error is thrown. */
  readonly skips: boolean;
  /**
   * Whether nobody sees the LockBusyError. Then it has no stack trace, which takes longer than all the rest of a try that
   * finds the lock busy.
   */
  readonly dropsBusy?: boolean;
}

/** {@link LockOptions} with every default filled in and every value checked. */
export interface AcquisitionTerms extends Purpose, WaitTerms {
  readonly type: HeldType;
  /** How many may hold the lock; undefined for all types but `permits`. */
  readonly permits: number | undefined;
  /** Whether only the newest caller waits. */
  readonly newest: boolean;
  readonly leaseTime: Milliseconds;
  /** Whether the user set the leaseTime, so that the watchdog does not renew the lease. */
  readonly fixed: boolean;
  readonly onLost: 'throw' | 'warn';
  readonly release: ReleaseMode;
  /** `Infinity`: without a limit. */
  readonly holdAtMost: Milliseconds;
  /** Whether the caller shares locks that are held around it. Otherwise it is treated as one outside all locks. */
  readonly reentry: boolean;
  /** Whether the caller can do without this lock. Its wait is then never part of a deadlock. */
  readonly tentative: boolean;
}

/** Those terms of an acquisition that its lease keeps. */
export type LeaseTerms = Pick<AcquisitionTerms, 'onLost' | 'release' | 'holdAtMost' | 'reentry' | 'group' | 'method'>;

/** The defaults that are the same for every service. */
export const DEFAULT_TERMS = {
  type: 'reentrant',
  permits: undefined,
  newest: false,
  holdAtMost: FOREVER,
  fixed: false,
  signal: undefined,
  group: '',
  method: '',
  skips: false,
  dropsBusy: false,
  reentry: true,
  tentative: false,
} satisfies Partial<AcquisitionTerms>;

export const LOCK_TYPES: readonly LockType[] = ['reentrant', 'fair', 'read', 'write', 'fenced'];
/** The most callers that may hold a lock at a time. */
export const MOST_PERMITS = 1_000;
export const RELEASE_MODES: readonly ReleaseMode[] = ['confirmed', 'background'];
/** The longest group, in characters. */
export const LONGEST_GROUP = 200;

export const GROUP = rule(
  `a string of at most ${LONGEST_GROUP} characters`,
  (value) => typeof value === 'string' && value.length <= LONGEST_GROUP,
);
const SIGNAL = rule('an AbortSignal', (value) => typeof (value as AbortSignal | null)?.addEventListener === 'function');
export const ON_LOST = oneOf('throw', 'warn');
export const RELEASE = oneOf(...RELEASE_MODES);
export const TYPE = oneOf(...LOCK_TYPES);

const ADOPT_OPTIONS: OptionTable<AdoptOptions> = {
  leaseTime: CHECKED_LATER,
  outageTimeout: CHECKED_LATER,
  group: GROUP,
};

const LOCK_OPTIONS: OptionTable<LockOptions> = {
  waitTime: CHECKED_LATER,
  outageTimeout: CHECKED_LATER,
  leaseTime: CHECKED_LATER,
  type: TYPE,
  permits: CHECKED_LATER,
  newest: TRUE_OR_FALSE,
  signal: SIGNAL,
  reentry: TRUE_OR_FALSE,
  group: GROUP,
};

export const RUN_OPTIONS: OptionTable<RunOptions> = {
  ...LOCK_OPTIONS,
  onLost: ON_LOST,
  release: RELEASE,
  holdAtMost: CHECKED_LATER,
};

/** Why calls that only acquire a lock have none of these options. */
const ONLY_RUN: RefusedOptions = {
  onLost: 'it is for withLock() and decorated methods. A lease that was acquired tells of its loss by its signal',
  release: 'it is for withLock() and decorated methods, because lease.release() waits for its answer',
  holdAtMost: 'it is for withLock() and decorated methods, because it limits how long a body runs',
};

/**
 * Checks the options of a call that only acquires a lock, and fills in `defaults`.
 *
 * @param what the name of the call in errors: `acquire('order:1')`
 * @throws LockConfigurationError naming the invalid option
 */
export function toTerms(options: LockOptions, defaults: AcquisitionTerms, what: string): AcquisitionTerms {
  checkOptions(options, LOCK_OPTIONS, what, ONLY_RUN);
  return resolve(options, defaults, what);
}

/** Like {@link toTerms}, for a call that runs a body. */
export function toRunTerms(options: RunOptions, defaults: AcquisitionTerms, what: string): AcquisitionTerms {
  checkOptions(options, RUN_OPTIONS, what);
  return resolve(options, defaults, what);
}

/** Like {@link toTerms}, for an adoption. */
export function toAdoptTerms(options: AdoptOptions, defaults: AcquisitionTerms, what: string): AcquisitionTerms {
  checkOptions(options, ADOPT_OPTIONS, what, ONLY_RUN);
  return resolve(options, defaults, what);
}

function resolve(options: RunOptions, defaults: AcquisitionTerms, what: string): AcquisitionTerms {
  const { waitTime, outageTimeout, leaseTime, holdAtMost, permits, type = defaults.type, signal } = options;
  const { onLost = defaults.onLost, release = defaults.release, group = defaults.group } = options;
  const { reentry = defaults.reentry, newest = defaults.newest } = options;
  const wait = waitTime === undefined ? defaults.waitTime : toWaitTime(waitTime, `${what}: waitTime`);
  if (newest) checkNewest({ ...options, waitTime: wait }, what);
  return {
    newest,
    type: permits === undefined ? type : 'permits',
    permits: permits === undefined ? defaults.permits : toPermits(permits, options.type, what),
    group,
    method: defaults.method,
    skips: defaults.skips,
    dropsBusy: defaults.dropsBusy,
    reentry,
    holdAtMost: holdAtMost === undefined ? defaults.holdAtMost : toHoldLimit(holdAtMost, `${what}: holdAtMost`),
    tentative: defaults.tentative,
    onLost,
    release,
    signal,
    fixed: leaseTime !== undefined,
    waitTime: wait,
    choseWaitTime: waitTime !== undefined,
    outageTimeout:
      outageTimeout === undefined ? defaults.outageTimeout : toWaitTime(outageTimeout, `${what}: outageTimeout`),
    leaseTime: leaseTime === undefined ? defaults.leaseTime : toFixedLease(leaseTime, `${what}: leaseTime`),
  };
}

/**
 * Checks the option `permits`.
 *
 * @param type the option of this name, if it was given
 * @throws LockConfigurationError, with a message that begins with `what`
 */
export function toPermits(permits: unknown, type: LockType | undefined, what: string): number {
  if (type !== undefined && type !== 'reentrant')
    throw new LockConfigurationError(
      `${what}: permits and type: '${type}' exclude each other, because a lock that several may hold is a type of its own. Leave out one of them`,
    );
  const isCount = Number.isInteger(permits) && (permits as number) >= 1 && (permits as number) <= MOST_PERMITS;
  if (isCount) return permits as number;
  const shown = typeof permits === 'string' ? `'${permits.slice(0, 40)}'` : String(permits);
  throw new LockConfigurationError(`${what}: permits is ${shown}; it must be a whole number from 1 to ${MOST_PERMITS}`);
}

/**
 * Checks what is combined with the option `newest`.
 *
 * @param option how the caller has written it
 * @throws LockConfigurationError, with a message that begins with `what`
 */
export function checkNewest(
  { type, permits, waitTime }: Pick<LockOptions, 'type' | 'permits' | 'waitTime'>,
  what: string,
  option = 'newest',
): void {
  const refuse = (other: string, why: string) =>
    new LockConfigurationError(
      `${what}: ${option} and ${other} exclude each other, because ${why}. Leave out one of them`,
    );
  if (type !== undefined && type !== 'reentrant')
    throw refuse(`type: '${type}'`, 'only one caller waits, for the lock alone');
  if (permits !== undefined) throw refuse('permits', 'the newest caller waits for the only holder');
  if (waitTime === 0) throw refuse('waitTime: 0', 'a caller that does not wait cannot be superseded');
}
