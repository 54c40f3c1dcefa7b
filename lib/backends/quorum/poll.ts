import { BackendError } from '../lock-backend.js';
import type { Question } from './quorum-node.js';

/** What the nodes have answered, each under its number. */
export interface Votes<T> {
  readonly replies: ReadonlyMap<number, T>;
  readonly errors: ReadonlyMap<number, BackendError>;
}

/** Waits until the answers decide the matter, or no more will come. Who is slow holds nobody up who does not need it. */
export function poll<T>(questions: readonly Question<T>[], decided: (votes: Votes<T>) => boolean): Promise<Votes<T>> {
  const replies = new Map<number, T>();
  const errors = new Map<number, BackendError>();
  const votes = { replies, errors };
  return new Promise((resolve) => {
    const look = () => {
      if (replies.size + errors.size === questions.length || decided(votes)) resolve(votes);
    };
    for (const [number, { inTime }] of questions.entries()) {
      inTime.then(
        (reply) => {
          replies.set(number, reply);
          look();
        },
        (error) => {
          errors.set(number, error);
          look();
        },
      );
    }
  });
}

/** How many have given an answer of this kind. */
export function count<T>({ replies }: Votes<T>, kind: (reply: T) => boolean): number {
  let sum = 0;
  for (const reply of replies.values()) if (kind(reply)) sum++;
  return sum;
}

/** Whether a majority of `nodes` has answered alike by `kind`, or has failed. */
export function agreed<T>(nodes: number, kind: (reply: T) => boolean): (votes: Votes<T>) => boolean {
  return (votes) => {
    const yes = count(votes, kind);
    return Math.max(yes, votes.replies.size - yes, votes.errors.size) >= majorityOf(nodes);
  };
}

export function majorityOf(nodes: number): number {
  return Math.floor(nodes / 2) + 1;
}

/** Why the matter could not be decided. Only what a majority refuses for good is refused for good. */
export function undecided({ errors, replies }: Votes<unknown>, nodes: number): BackendError {
  const failures = [...errors.values()];
  const final = failures.filter(({ kind }) => kind !== 'unavailable');
  const kind = final.length >= majorityOf(nodes) ? final[0].kind : 'unavailable';
  const reasons = [...new Set(failures.map(({ message }) => message))].join('; ');
  return new BackendError(
    `No majority of the ${nodes} nodes: ${replies.size} answered${reasons === '' ? '' : `, the others failed (${reasons})`}`,
    kind,
    'unknown',
    { cause: failures[0] },
  );
}
