import { itHolds } from './schedules.js';

describe('the engine, on a server that loses data, is set back or forth, or force-releases', () => {
  itHolds('keeps tokens growing and serves everybody', 'unreliable', ['upset', 'lost']);
});
