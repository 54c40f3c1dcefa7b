import Sequencer from '@jest/test-sequencer';

// In a fresh clone, jest does not know yet which suites take long. These do, mostly because they wait. If they began
// last, one worker would still be busy with them when the others have finished.
const LONGEST = [
  'backends/redis/contract',
  'service/inspection/list',
  'backends/redis/borrowed-clients',
  'service/redis/outages',
  'backends/redis/blocked-clients',
  'dashboard/viewers',
  'engine/deadlock/on-redis',
  'engine/lease/released-by-force',
  'service/inspection/clients',
  'backends/quorum/outages',
  'engine/synchronizers/lost-answers',
];

/** Runs the suites that take longest first, and the others in jest's own order. */
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
