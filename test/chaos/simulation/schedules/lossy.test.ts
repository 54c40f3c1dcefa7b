import { itHolds } from '../run-schedules.js';

describe('the engine, while commands, answers, messages and connections get lost', () => {
  itHolds('keeps leases apart and leaves nothing behind', 'lossy', ['granted', 'confirmed', 'lost']);
});
