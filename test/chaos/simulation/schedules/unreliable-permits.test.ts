import { itHolds } from '../run-schedules.js';

describe('permits with leases and latches, on a server that loses data and time', () => {
  itHolds('recover, and serve everybody', 'unreliablePermits', ['upset', 'lost', 'latch']);
});
