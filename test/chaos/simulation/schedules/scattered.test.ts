import { itHolds } from '../run-schedules.js';

describe('the engine, with several locks in different slots of a cluster, while releases arrive late', () => {
  itHolds('keeps leases apart, and releases each owner id once', 'scattered', ['granted', 'refused']);
});
