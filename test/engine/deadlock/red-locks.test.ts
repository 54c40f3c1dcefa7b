import { describeRedLocks } from './describe-red-locks.js';

describeRedLocks('memory');
