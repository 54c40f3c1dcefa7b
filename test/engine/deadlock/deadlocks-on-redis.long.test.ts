import { describeDeadlocks } from './describe-deadlocks.js';

// npm test runs these in virtual time, in memory; on Redis, each deadlock takes seconds to be found.
describeDeadlocks('Redis');
