import { itHolds } from '../run-schedules.js';

describe('semaphores and latches, while everything goes wrong at once', () => {
  itHolds('never exceed their number, and leave nothing behind', 'stormyPermits', ['crashed', 'lost', 'closing']);
});
