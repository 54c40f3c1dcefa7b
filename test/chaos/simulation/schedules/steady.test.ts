import { itHolds } from '../run-schedules.js';

describe('the engine, on a slow network', () => {
  itHolds('loses no lease, and serves waiting callers without delay', 'steady', ['granted', 'refused', 'confirmed']);
});
