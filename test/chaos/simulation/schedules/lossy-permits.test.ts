import { itHolds } from '../run-schedules.js';

describe('semaphores and latches, while commands, answers, messages and connections get lost', () => {
  itHolds('keep to their number, and leave nothing behind', 'lossyPermits', ['granted', 'confirmed', 'lost']);
});
