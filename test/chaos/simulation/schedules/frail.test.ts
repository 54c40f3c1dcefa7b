import { itHolds } from '../run-schedules.js';

describe('the engine, while processes die, stand still and have their clocks set', () => {
  itHolds('keeps leases apart and leaves nothing behind', 'frail', ['crashed', 'lost', 'closing']);
});
