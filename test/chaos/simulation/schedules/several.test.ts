import { itHolds } from '../run-schedules.js';

describe('the engine, with several locks at once', () => {
  itHolds('gives all or none, and serves everybody', 'several', ['granted', 'refused']);
});
