import { itHolds } from '../run-schedules.js';

describe('the engine, when renewals arrive after the release', () => {
  itHolds('leaves no lock that nobody holds', 'lateRenewals', ['granted', 'confirmed']);
});
