import { itHolds } from './schedules.js';

describe('semaphores and latches, when requests arrive after their callers have left', () => {
  itHolds('leave no permit that nobody holds', 'ghostPermits', ['granted', 'refused']);
});
