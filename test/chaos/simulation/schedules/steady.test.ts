import { itHolds } from '../run-schedules.js';

describe('the engine, on a slow network', () => {
  itHolds('loses no lease, and serves who waits without delay', 'steady', ['granted', 'refused', 'confirmed']);
});
