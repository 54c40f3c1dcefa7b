import { answeredInTime, everyCallerAnswered } from './checker/every-caller-answered.js';
import { forcedReleases } from './checker/forced-releases.js';
import { growingTokens } from './checker/growing-tokens.js';
import { latchesOpenOnce } from './checker/latches-open-once.js';
import { lossesNoticed } from './checker/losses-noticed.js';
import { lossesReported } from './checker/losses-reported.js';
import { newestWaits } from './checker/newest-waits.js';
import { noOverlap } from './checker/no-overlap.js';
import { nothingLeft } from './checker/nothing-left.js';
import { ownersSpentOnce } from './checker/owners-spent-once.js';
import { permitsConserved } from './checker/permits-conserved.js';
import { permitsKept } from './checker/permits-kept.js';
import { notPassedOver, servedInTime } from './checker/served-in-time.js';
import { before, Digest } from './checker/tenure.js';
import { ticketsUsedOnce } from './checker/tickets-used-once.js';
import { timeline } from './checker/timeline.js';
import type { Rule, Violation } from './checker/violation.js';
import type { History } from './history.js';

export interface Expectations {
  /** How many permits there are, by the semaphore's name. */
  readonly permits?: ReadonlyMap<string, number>;
  /** Within how many milliseconds a free lock must have gone to a waiting caller. Default: not checked. */
  readonly servedWithin?: number;
  /** See {@link servedInTime}. */
  readonly lapseNoticed?: number;
  /**
   * For how many milliseconds a caller of several locks may be passed over. Default: no limit, because faults occur.
   */
  readonly severalWithin?: number;
  /** When the faults ended, from which time on this is checked. Default: the start. */
  readonly servedSince?: number;
  /** How many milliseconds after its `waitTime` a caller must have its answer. Default: not checked. */
  readonly answeredWithin?: number;
  /**
   * How many milliseconds may pass between the end of a permit's lease and the report of its loss. Default: no limit,
   * because processes are suspended.
   */
  readonly reportedWithin?: number;
  /**
   * The same for locks, in addition to the time for which a process is stalled. Default: no limit, because it is not
   * known when processes are suspended.
   */
  readonly lossesReportedWithin?: number;
  /** How many milliseconds the adoption of a detached lock may take. Default: no limit, because requests get lost. */
  readonly adoptedWithin?: number;
  /**
   * Two masters served at the same time, so a token may be lower than one of the other master by as much as their
   * clocks are ahead of the time, in µs.
   */
  readonly clockLead?: number;
  /** The names of rules that this history may violate. */
  readonly except?: readonly string[];
}

export interface Verdict {
  readonly sound: boolean;
  /** In chronological order. */
  readonly violations: readonly Violation[];
  /** A description of the first violation, with the records around it. Empty for a sound history. */
  readonly explanation: string;
}

/**
 * Checks that in a history no two valid leases overlapped, tokens grew with each grant, no owner id was used again
 * after its release, every caller was served or got a reason, lost leases were reported, semaphores have all their
 * permits at the end, latches opened when they should, only the newest waited where callers want that, tickets were used once, and nothing is left behind.
 *
 *     const verdict = checkHistory(History.read(...logs), { permits: new Map([['pool', 3]]) });
 *     if (!verdict.sound) throw new Error(verdict.explanation);
 */
export function checkHistory(history: History, expectations: Expectations = {}): Verdict {
  const {
    permits = new Map(),
    servedWithin,
    lapseNoticed,
    severalWithin,
    servedSince,
    reportedWithin,
    lossesReportedWithin,
  } = expectations;
  const { answeredWithin, adoptedWithin, clockLead = 0, except = [] } = expectations;
  const digest = new Digest(history);
  const rules: Rule[] = [
    noOverlap(permits),
    growingTokens(clockLead),
    everyCallerAnswered,
    lossesReported(lossesReportedWithin),
    forcedReleases,
    ownersSpentOnce,
    lossesNoticed,
    permitsKept(reportedWithin),
    permitsConserved(permits),
    latchesOpenOnce(servedWithin, servedSince),
    ticketsUsedOnce(adoptedWithin),
    nothingLeft,
  ];
  if (servedWithin !== undefined) rules.push(servedInTime(permits, servedWithin, servedSince, lapseNoticed));
  if (servedWithin !== undefined) rules.push(newestWaits(servedWithin, servedSince));
  if (answeredWithin !== undefined) rules.push(answeredInTime(answeredWithin));
  if (severalWithin !== undefined) rules.push(notPassedOver(severalWithin));
  const violations = rules
    .flatMap((rule) => rule(digest))
    .filter(({ rule }) => !except.includes(rule))
    .sort((one, other) => (before(one.at, other.at) ? -1 : 1));
  const [first] = violations;
  const explanation = first === undefined ? '' : explain(history, first, violations.length);
  return { sound: first === undefined, violations, explanation };
}

function explain(history: History, first: Violation, count: number): string {
  const others = count > 1 ? ` (the first of ${count} violations)` : '';
  return `${first.rule}${others}\n${first.message}\n\n${timeline(history, first)}`;
}
