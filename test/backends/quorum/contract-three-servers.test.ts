import { describeQuorum } from './describe-quorum.js';

describeQuorum(3);
