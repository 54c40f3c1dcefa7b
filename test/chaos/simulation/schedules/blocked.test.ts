import { itHolds } from '../run-schedules.js';

describe('the engine and the thread of keepWhileBlocked, while event loops are blocked for up to ten leases', () => {
  itHolds('keep every lock', 'blocked', ['stalled', 'confirmed'], ['lost']);
  itHolds('keep leases apart and leave nothing behind, while threads stall and everything gets lost', 'stormyBlocked', [
    'stalled',
    'confirmed',
    'lost',
    'crashed',
  ]);
});
