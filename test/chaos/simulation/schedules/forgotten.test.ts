import { itHolds } from '../run-schedules.js';

describe('the engine, on a server that forgets its scripts', () => {
  itHolds('loses nothing, and serves waiting callers without delay', 'forgotten', ['granted', 'refused']);
});
