import { itHolds } from '../run-schedules.js';

describe('the engine, with locks that are detached and adopted', () => {
  itHolds('keeps leases apart, uses each ticket once, and adopts in time', 'tickets', ['adopting', 'refused']);
  itHolds('keeps leases apart and leaves nothing behind, while requests and processes get lost', 'stormyTickets', [
    'adopting',
    'refused',
    'lost',
    'crashed',
  ]);
});
