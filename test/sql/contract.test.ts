import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { rowLocks } from '../../lib/sql.js';
import { describeLockBackend } from '../contract/describe-lock-backend.js';
import { SQL_SERVERS, startSqlServer } from '../support/servers/sql/sql-server.js';

describe.each(SQL_SERVERS)('%s', (kind) => {
  describeLockBackend(
    `SqlLockBackend, ${kind}`,
    async () => {
      const server = await startSqlServer(kind);
      return {
        connect: async () => ({
          backend: rowLocks({ url: server.url, createTable: true, connections: 150 }),
          id: nodeRuntime.uuid(),
        }),
        stop: () => server.stop(),
      };
    },
    {
      types: ['reentrant', 'write'],
      publishes: false,
      adopts: false,
      numbers: false,
      flights: false,
      sharesOwners: false,
      knowsHolders: false,
      most: 40,
      leaseUnit: kind === 'MariaDB' ? 1_000 : 1,
    },
  );
});
