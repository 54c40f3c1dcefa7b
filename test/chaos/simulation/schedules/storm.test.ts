import { itHolds } from '../run-schedules.js';

describe('the engine, while everything goes wrong at once', () => {
  itHolds('keeps leases apart and leaves nothing behind', 'storm', ['crashed', 'lost', 'closing']);
});
