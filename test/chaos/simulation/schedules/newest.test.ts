import { itHolds } from '../run-schedules.js';

describe('the engine, with a lock for which only the newest caller waits', () => {
  itHolds('lets nobody else wait for long, and serves the last one', 'newest', ['granted', 'refused']);
  itHolds('serves somebody, while requests and processes get lost', 'stormyNewest', ['granted', 'refused', 'crashed']);
});
