import { everyCallerAnswered } from './checker/every-caller-answered.js';
import { forcedReleases } from './checker/forced-releases.js';
import { growingTokens } from './checker/growing-tokens.js';
import { latchesOpenOnce } from './checker/latches-open-once.js';
import { lossesNoticed } from './checker/losses-noticed.js';
import { lossesReported } from './checker/losses-reported.js';
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
  /** Milliseconds after which a lock that is free must have gone to who waits for it; not looked at unless given. */
  readonly servedWithin?: number;
  /** Milliseconds that a caller of several locks may be passed over; absent: something goes wrong, so that none can be given. */
  readonly severalWithin?: number;
  /** From when on: when the faults were over. Default: from the start. */
  readonly servedSince?: number;
  /** Milliseconds from the end of a lease of permits to the report of it; absent: processes stand still, so that none can be given. */
  readonly reportedWithin?: number;
  /** The same for locks, beside what a stalled process needs; absent: it is not known when processes stand still. */
  readonly lossesReportedWithin?: number;
  /** Milliseconds that the adoption of a detached lock may take; absent: requests get lost, so that none can be given. */
  readonly adoptedWithin?: number;
  /** Two masters served at one time: a token may be lower than another master's by what their clocks are ahead of the time, in µs. */
  readonly clockLead?: number;
  /** Rules that this history need not keep to, by name. */
  readonly except?: readonly string[];
}

export interface Verdict {
  readonly sound: boolean;
  /** In the order of time. */
  readonly violations: readonly Violation[];
  /** The first violation in words, with what happened around it; empty for a sound history. */
  readonly explanation: string;
}

/**
 * Proves of a history that no two valid leases overlapped, that tokens grew with each grant, that no owner id was used again after its
 * release, that every caller was served or told why not, that lost leases were reported, that semaphores have their permits in the end, that latches opened when they should,
 * that tickets were used once, and that nothing is left.
 *
 *     const verdict = checkHistory(History.read(...logs), { permits: new Map([['pool', 3]]) });
 *     if (!verdict.sound) throw new Error(verdict.explanation);
 */
export function checkHistory(history: History, expectations: Expectations = {}): Verdict {
  const {
    permits = new Map(),
    servedWithin,
    severalWithin,
    servedSince,
    reportedWithin,
    lossesReportedWithin,
  } = expectations;
  const { adoptedWithin, clockLead = 0, except = [] } = expectations;
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
  if (servedWithin !== undefined) rules.push(servedInTime(permits, servedWithin, servedSince));
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
