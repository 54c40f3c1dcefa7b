import { describeOutages } from './describe-outages.js';

describeOutages(3);
