import { describeLockBackend } from '../../contract/describe-lock-backend.js';
import { WatchedServer } from '../../contract/support/watched-server.js';

const watched = new WatchedServer();

describeLockBackend('RedisBackend, one server', watched.open);
watched.describeKeys({
  folders: ['fair', 'flight', 'lock', 'read-write', 'waits'],
  scriptsThatReadLeases: [
    'acquire-all',
    'acquire-read',
    'acquire-write',
    'find-holders-1',
    'force-release-5',
    'inspect-5',
    'release-read',
    'renew-read',
  ],
});
