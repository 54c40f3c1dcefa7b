import Sequencer from '@jest/test-sequencer';

// A fresh clone does not know yet which suites take long. These do, most of it in waiting: begun last, they would keep one worker busy
// when the others have finished.
const LONGEST = [
  'quorum/contract',
  'contract/',
  'engine/deadlock/deadlocks',
  'package/published',
  'quorum/simulation',
  'cli/bad-input',
  'sql/lock-rows',
  'sample-app/demo',
  'seen/clients',
  'engine/lease/forced-release',
  'engine/deadlock/on-redis',
  'quorum/outage',
  'cli/locks',
  'dashboard/viewers',
  'dashboard/snapshot-feed',
  'synchronizers/contention',
  'engine/queue/exclusion',
];

/** Begins with the suites that take the longest; the others follow in jest's own order. */
export default class LongestFirst extends Sequencer {
  sort(tests) {
    const order = super.sort(tests);
    const rank = ({ path }) => {
      const place = LONGEST.findIndex((suite) => path.includes(`/test/${suite}`));
      return place < 0 ? LONGEST.length : place;
    };
    return order.toSorted((a, b) => rank(a) - rank(b));
  }
}
