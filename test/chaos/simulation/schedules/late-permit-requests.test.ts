import { itHolds } from '../run-schedules.js';

describe('semaphores and latches, when requests arrive after their callers have left', () => {
  itHolds('leave no permit that nobody holds', 'latePermitRequests', ['granted', 'refused']);
});
