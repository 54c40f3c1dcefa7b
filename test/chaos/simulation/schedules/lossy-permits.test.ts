import { itHolds } from '../run-schedules.js';

describe('semaphores and latches, while commands, answers, messages and connections get lost', () => {
  itHolds('never exceed their number, and leave nothing behind', 'lossyPermits', ['granted', 'confirmed', 'lost']);
});
