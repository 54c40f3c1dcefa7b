import { itHolds } from '../run-schedules.js';

describe('the engine, with a lock that n may hold', () => {
  itHolds('never lets more hold it, and serves waiting callers without delay', 'places', ['granted', 'refused']);
  itHolds('never lets more hold it, while requests and processes get lost', 'stormyPlaces', [
    'granted',
    'refused',
    'lost',
    'crashed',
  ]);
  itHolds('frees every place, although requests arrive after their callers have left', 'latePlaces', [
    'granted',
    'refused',
  ]);
});
