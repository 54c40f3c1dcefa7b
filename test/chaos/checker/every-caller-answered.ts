import { before, type Call, type Digest } from './tenure.js';
import type { Rule, Violation } from './violation.js';

/**
 * The least time in milliseconds after which a patient caller may be refused because of an outage: see the simulation's
 * member.ts.
 */
const SHORTEST_OUTAGE = 290;

/** Every caller was served or got an error. A caller without a time limit is served, unless its process shuts down. */
export function everyCallerAnswered(digest: Digest): Violation[] {
  const violations: Violation[] = [];
  for (const call of digest.calls.values()) {
    const message = complaint(call, digest);
    if (message === undefined) continue;
    const [lock] = call.locks;
    const at = call.answered ?? digest.end;
    violations.push({ rule: 'every caller answered', message: `${lock}: ${message}`, at, lock, calls: [call.call] });
  }
  return violations;
}

/**
 * A caller that waits for a limited time is served or refused when that time is over, unless its process stands still.
 *
 * @param most how many milliseconds later the answer may come
 */
export function answeredInTime(most: number): Rule {
  return ({ calls, stalls, crashed, end }) => {
    const violations: Violation[] = [];
    for (const { call, process, locks, sent, waitTime, answered } of calls.values()) {
      if (waitTime === undefined || !Number.isFinite(waitTime)) continue;
      let due = sent.at + waitTime;
      for (const stall of stalls)
        if (stall.process === process && stall.at <= due + most && stall.until > due) due = stall.until;
      const at = answered ?? crashed.get(process) ?? end;
      if (at.at <= due + most) continue;
      const [lock] = locks;
      const message = `${lock}: ${call} waits for ${waitTime} ms, and had its answer ${(at.at - due).toFixed(1)} ms after that`;
      violations.push({ rule: 'answered in time', message, at, lock, calls: [call] });
    }
    return violations;
  };
}

function complaint(call: Call, { crashed, closing }: Digest): string | undefined {
  const { refused, answered, sent } = call;
  if (answered === undefined) {
    return crashed.has(call.process)
      ? undefined
      : `${call.call} has waited since ${sent.at.toFixed(1)} and got no answer`;
  }
  if (refused !== undefined) {
    if (!isReason(refused.error) && !isTicketUsed(call))
      return `${call.call} was refused with ${refused.error}: ${refused.message}`;
    const closed = closing.get(call.process);
    if (call.newest && refused.error === 'LockSupersededError') return undefined;
    // A caller that waits inside a lost lock gets an error.
    if (refused.error === 'LockLostError') return undefined;
    // Callers wait during an outage for a while, measured by clocks that may be fast.
    if (
      refused.error === 'LockUnavailableError' &&
      /^Gave up waiting/.test(refused.message) &&
      answered.at - sent.at > SHORTEST_OUTAGE
    )
      return undefined;
    if (call.patient && (closed === undefined || before(answered, closed)))
      return `${call.call} would have waited, and was refused with ${refused.error}: ${refused.message}`;
    return undefined;
  }
  if (call.tenures.length < call.locks.length)
    return `${call.call} got ${call.tenures.length} of ${call.locks.length} locks`;
  return undefined;
}

/** Whether somebody else has adopted the lock, or acquired it after the time of the ticket. */
function isTicketUsed({ ticket, refused }: Call): boolean {
  return ticket !== undefined && refused?.error === 'LockNotOwnedError';
}

/** Whether this is an error of the library, which gives a reason. */
function isReason(error: string): boolean {
  return /^Lock(Busy|Aborted|Superseded|Unavailable|Upgrade|Key|Lost)Error$/.test(error);
}
