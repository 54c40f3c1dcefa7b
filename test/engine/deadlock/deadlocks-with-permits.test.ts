import { describeDeadlocksWithPermits } from './describe-deadlocks-with-permits.js';

describeDeadlocksWithPermits('memory');
