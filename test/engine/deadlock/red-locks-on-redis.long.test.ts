import { describeRedLocks } from './describe-red-locks.js';

// npm test runs these in virtual time, in memory; on Redis, each deadlock takes seconds to be found.
describeRedLocks('Redis');
