import Sequencer from '@jest/test-sequencer';

// A fresh clone does not know yet which suites take long. These do, most of it in waiting: begun last, they would keep
// one worker busy when the others have finished.
const LONGEST = [
  'engine/deadlock/deadlocks',
  'backends/quorum/contract',
  'backends/redis/contract',
  'cli/broken-cluster',
  'dashboard/viewers',
  'backends/memory/contract',
  'engine/deadlock/on-redis',
  'engine/deadlock/red-locks',
  'engine/lease/forced-release',
  'dashboard/snapshot-feed',
  'service/inspection/clients',
  'backends/quorum/outage',
  'engine/permits/lost-answers',
  'cli/ending',
  'service/redis/outages',
  'backends/quorum/simulation',
  'sql/lock-rows',
  'sample-app/demo',
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
