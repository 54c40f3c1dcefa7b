import { BackendError } from '../backend-error.js';
import type { NodeCall } from './quorum-node.js';

/** What the nodes have answered so far, each under its index. */
export interface NodeReplies<T> {
  readonly replies: ReadonlyMap<number, T>;
  readonly errors: ReadonlyMap<number, BackendError>;
}

/**
 * Waits until the replies decide the outcome, or all nodes have answered or failed. Slow nodes whose replies are not
 * needed cause no delay.
 */
export function collectReplies<T>(
  calls: readonly NodeCall<T>[],
  isDecided: (replies: NodeReplies<T>) => boolean,
): Promise<NodeReplies<T>> {
  const replies = new Map<number, T>();
  const errors = new Map<number, BackendError>();
  const collected = { replies, errors };
  return new Promise((resolve) => {
    const check = () => {
      if (replies.size + errors.size === calls.length || isDecided(collected)) resolve(collected);
    };
    for (const [index, { inTime }] of calls.entries()) {
      inTime.then(
        (reply) => {
          replies.set(index, reply);
          check();
        },
        (error) => {
          errors.set(index, error);
          check();
        },
      );
    }
  });
}

/** How many replies satisfy a condition. */
export function countReplies<T>({ replies }: NodeReplies<T>, condition: (reply: T) => boolean): number {
  let count = 0;
  for (const reply of replies.values()) if (condition(reply)) count++;
  return count;
}

/** Whether a majority of `nodes` satisfies a condition, does not satisfy it, or has failed. */
export function majorityAgrees<T>(
  nodes: number,
  condition: (reply: T) => boolean,
): (replies: NodeReplies<T>) => boolean {
  return (collected) => {
    const yes = countReplies(collected, condition);
    return Math.max(yes, collected.replies.size - yes, collected.errors.size) >= majorityOf(nodes);
  };
}

export function majorityOf(nodes: number): number {
  return Math.floor(nodes / 2) + 1;
}

/** The error for an attempt without a majority. It is permanent only if a majority failed permanently. */
export function noMajorityError({ errors, replies }: NodeReplies<unknown>, nodes: number): BackendError {
  const failures = [...errors.values()];
  const permanent = failures.filter(({ kind }) => kind !== 'unavailable');
  const kind = permanent.length >= majorityOf(nodes) ? permanent[0].kind : 'unavailable';
  const reasons = [...new Set(failures.map(({ message }) => message))].join('; ');
  return new BackendError(
    `No majority of the ${nodes} nodes: ${replies.size} answered${reasons === '' ? '' : `, the others failed (${reasons})`}`,
    kind,
    'unknown',
    { cause: failures[0] },
  );
}
