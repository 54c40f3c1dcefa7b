import type { Digest } from './tenure.js';
import type { Violation } from './violation.js';

/** No key, subscription, timer or listener is left of what the processes did. */
export function nothingLeft({ left, end }: Digest): Violation[] {
  return left.flatMap(({ process, counts }) =>
    Object.entries(counts)
      .filter(([, count]) => count !== 0)
      .map(([what, count]) => ({
        rule: 'nothing left',
        message: `${process} has left ${count} ${what}`,
        at: end,
        calls: [],
      })),
  );
}
