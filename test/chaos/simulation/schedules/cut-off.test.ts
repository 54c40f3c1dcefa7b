import { itHolds } from '../run-schedules.js';

describe('the engine, while the server is out of reach for longer than leases last', () => {
  itHolds('notifies every holder when its lease ends', 'cutOff', ['confirmed', 'lost']);
});
