import type { Digest } from './tenure.js';
import type { Violation } from './violation.js';

/** The processes have left no key, subscription, timer or listener behind. */
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
