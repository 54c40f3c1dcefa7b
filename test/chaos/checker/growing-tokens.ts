import { before, type Digest, type Instant, type Tenure } from './tenure.js';
import type { Violation } from './violation.js';

interface Seen {
  /** The latest tenure that excludes others. */
  exclusive?: Tenure;
  /** The tenure with the highest token of all. */
  highest?: Tenure;
  /** The readers since the last exclusive tenure, by their tokens. */
  readonly readers: Map<number, Tenure>;
  /** The highest one of each process, without readers. */
  readonly own: Map<string, Tenure>;
  /** The highest one at each exclusive grant, in order. */
  readonly peaks: { readonly granted: Instant; readonly highest: Tenure }[];
}

/**
 * Tokens of one lock strictly grow in the order of the grants. Only readers that share the lock may be granted in
 * another order than that of their tokens, because their answers can overtake each other. When the server has lost its
 * data, earlier holders may still hand off the lock among themselves, but no new token is as low as one that was
 * granted before the loss. For the tokens of one process, this is true even if the server's clock was set back as well,
 * because the process sends the highest token that it has seen. A process that stood still between the answer and the
 * record of the grant may record it after the next one. Its lease had ended by then, so it never relied on it.
 *
 * Several hold a lock with permits at a time, so their tokens only differ.
 *
 * @param clockLead by how much a token may be lower, in µs. Two masters that serve at the same time have separate
 *   clocks, each of which is ahead of the time of day by at most this. 0 if there is one master.
 */
export function growingTokens(clockLead: number): (digest: Digest) => Violation[] {
  return (digest) => violationsOf(digest, clockLead);
}

function violationsOf(digest: Digest, clockLead: number): Violation[] {
  const { tenures } = digest;
  const violations: Violation[] = [];
  const locks = new Map<string, Seen>();
  /** Those of locks that n may hold. */
  const places = new Map<string, Tenure>();
  for (const tenure of tenures) {
    const { lock, token, type } = tenure;
    if (type === 'place') {
      const other = places.get(`${lock} ${token}`);
      places.set(`${lock} ${token}`, tenure);
      if (other === undefined || tenure.suspect || isShare(tenure, digest)) continue;
      const message = `${lock}: token ${token} of ${tenure.call} repeats that of ${other.call}`;
      violations.push({ rule: 'growing tokens', message, at: tenure.granted, lock, calls: [other.call, tenure.call] });
      continue;
    }
    if (token === undefined || isShare(tenure, digest) || isReaderBeside(tenure, tenures)) continue;
    const seen: Seen = locks.get(lock) ?? { readers: new Map(), own: new Map(), peaks: [] };
    locks.set(lock, seen);
    const any = type === 'read' ? (seen.readers.get(token) ?? seen.exclusive) : seen.highest;
    const last = isDoubtful(tenure) ? highestKnown(tenure, seen) : any;
    if (last !== undefined && token <= last.token! - clockLead && !hadEnded(tenure)) {
      const order = token === last.token ? 'repeats that of' : `is lower than ${last.token} of`;
      const message = `${lock}: token ${token} of ${tenure.call} ${order} ${last.call}, which was granted before`;
      violations.push({ rule: 'growing tokens', message, at: tenure.granted, lock, calls: [last.call, tenure.call] });
    }
    if (seen.highest === undefined || token > seen.highest.token!) seen.highest = tenure;
    if (type === 'read') seen.readers.set(token, tenure);
    else {
      if (token > (seen.own.get(tenure.process)?.token ?? 0)) seen.own.set(tenure.process, tenure);
      seen.exclusive = seen.highest;
      seen.peaks.push({ granted: tenure.granted, highest: seen.highest });
      seen.readers.clear();
    }
  }
  return violations;
}

/** Whether the lease had ended when its grant was recorded. Of a suspect one, nobody knows when it ends. */
function hadEnded({ suspect, deadline, granted }: Tenure): boolean {
  return !suspect && deadline <= granted.at;
}

/** Whether it was granted after the event that makes it suspect. */
function isDoubtful({ doubt, granted }: Tenure): boolean {
  return doubt !== undefined && before(doubt.since, granted);
}

/** The tenure whose token even a server that has lost its data has to exceed. */
function highestKnown({ doubt, process }: Tenure, { own, peaks }: Seen): Tenure | undefined {
  const mine = own.get(process);
  if (doubt === undefined || doubt.forgetsTokens) return mine;
  const old = peaks.filter(({ granted }) => before(granted, doubt.since)).at(-1)?.highest;
  return mine !== undefined && mine.token! > (old?.token ?? 0) ? mine : old;
}

/** The readers in the scope of one writer share one read lock. */
function isReaderBeside({ type, within, owner, lock, token, granted }: Tenure, tenures: readonly Tenure[]): boolean {
  if (type !== 'read' || within === undefined) return false;
  const first = tenures.find((other) => other.lock === lock && other.token === token && other.owner === owner);
  return first !== undefined && first.within === within && first.granted !== granted;
}

/** Whether this is a re-entry, which has the token of the lease that it shares. */
function isShare(tenure: Tenure, digest: Digest): boolean {
  const outer = digest.outer(tenure);
  return outer !== undefined && outer.owner === tenure.owner && outer.token === tenure.token;
}
