import type { Digest, Tenure } from './tenure.js';
import type { Violation } from './violation.js';

interface Seen {
  /** Of those that exclude others. */
  exclusive?: Tenure;
  /** Of all. */
  highest?: Tenure;
  /** Since the last exclusive one, by their tokens. */
  readonly readers: Map<number, Tenure>;
  /** The highest of each process but for readers. */
  readonly own: Map<string, Tenure>;
}

/**
 * Tokens of one lock strictly grow in the order of the grants. Only readers beside each other may come in another order than that of
 * their tokens: their answers overtake one another. Of what one process gets this is also true while the server has lost its data or
 * its time: it says what it has seen.
 */
export function growingTokens({ tenures, calls }: Digest): Violation[] {
  const violations: Violation[] = [];
  const locks = new Map<string, Seen>();
  for (const tenure of tenures) {
    const { lock, token, type } = tenure;
    if (token === undefined || isShare(tenure, calls)) continue;
    const seen: Seen = locks.get(lock) ?? { readers: new Map(), own: new Map() };
    locks.set(lock, seen);
    const any = type === 'read' ? (seen.readers.get(token) ?? seen.exclusive) : seen.highest;
    const last = tenure.suspect ? seen.own.get(tenure.process) : any;
    if (last !== undefined && token <= last.token!) {
      const order = token === last.token ? 'repeats that of' : `is lower than ${last.token} of`;
      const message = `${lock}: token ${token} of ${tenure.call} ${order} ${last.call}, which was granted before`;
      violations.push({ rule: 'growing tokens', message, at: tenure.granted, lock, calls: [last.call, tenure.call] });
    }
    if (seen.highest === undefined || token > seen.highest.token!) seen.highest = tenure;
    if (type === 'read') seen.readers.set(token, tenure);
    else {
      if (token > (seen.own.get(tenure.process)?.token ?? 0)) seen.own.set(tenure.process, tenure);
      seen.exclusive = seen.highest;
      seen.readers.clear();
    }
  }
  return violations;
}

/** Re-entry: the token is that of the lease which it is a share of. */
function isShare({ within, lock, owner, token }: Tenure, calls: Digest['calls']): boolean {
  const outer = within === undefined ? undefined : calls.get(within)?.tenures.find((tenure) => tenure.lock === lock);
  return outer !== undefined && outer.owner === owner && outer.token === token;
}
