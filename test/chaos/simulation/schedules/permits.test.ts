import { itHolds } from '../run-schedules.js';

describe('semaphores and latches, on a slow network', () => {
  itHolds('loses no permit, and serves who waits without delay', 'permits', [
    'granted',
    'refused',
    'confirmed',
    'latch',
  ]);
});
