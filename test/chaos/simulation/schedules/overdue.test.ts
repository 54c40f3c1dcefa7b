import { itHolds } from '../run-schedules.js';

describe('the engine, while leases end and others hold the same lock or semaphore', () => {
  itHolds('gives their places to waiting callers without delay', 'overdue', ['granted', 'lost']);
});
