import { describeDeadlocksWithPermits } from './describe-deadlocks-with-permits.js';

// npm test runs these in virtual time, in memory; on Redis, each deadlock takes seconds to be found.
describeDeadlocksWithPermits('Redis');
