import { itHolds } from '../run-schedules.js';

describe('semaphores and latches, on a slow network', () => {
  itHolds('lose no permit, and serve waiting callers without delay', 'permits', [
    'granted',
    'refused',
    'confirmed',
    'latch',
  ]);
});
