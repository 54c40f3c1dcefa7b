import { itHolds } from '../run-schedules.js';

describe('the engine, on a server that loses data, has its clock set, or force-releases', () => {
  itHolds('keeps tokens growing and serves everybody', 'unreliable', ['upset', 'lost']);
});
