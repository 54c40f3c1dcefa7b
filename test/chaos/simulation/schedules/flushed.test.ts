import { itHolds } from '../run-schedules.js';

describe('the engine, on a server whose data is deleted while many locks are busy', () => {
  itHolds('keeps tokens growing, and notifies every holder', 'flushed', ['upset', 'lost']);
});
