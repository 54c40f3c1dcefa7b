import { describeLockBackend } from '../../contract/describe-lock-backend.js';
import { WatchedServer } from '../../contract/support/watched-server.js';

const watched = new WatchedServer();

describeLockBackend('RedisBackend, one server', watched.open);
watched.describeKeys({
  folders: ['fair', 'flight', 'line', 'lock', 'permits', 'read-write', 'waits'],
  withUnnamedKeys: [
    'acquire-all',
    'acquire-read',
    'acquire-write',
    'adopt-2',
    'enter-line',
    'enter-permits-line',
    'enter-read-write-line-3',
    'find-holders-1',
    'force-release-5',
    'inspect-5',
    'refresh-places-1',
    'release-fair',
    'release-flight-5',
    'release-permits',
    'release-read',
    'release-reentrant',
    'release-write',
    'remove-fair-waiter-4',
    'remove-place-1',
    'renew-fair',
    'renew-permits',
    'renew-read',
    'renew-reentrant',
    'renew-write',
    'transfer-permits-2',
    'transfer-reentrant-2',
    'transfer-write-4',
  ],
});
