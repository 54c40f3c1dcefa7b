import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { describeLockBackend } from '../contract/describe-lock-backend.js';
import { startSqlServer } from '../support/servers/sql/sql-server.js';
import { ALL_SQL_LOCKS, SQL_LOCKS } from './sql-locks.js';

describe.each(ALL_SQL_LOCKS)('%s on %s', (which, kind) => {
  describeLockBackend(
    `${which}, ${kind}`,
    async () => {
      const server = await startSqlServer(kind);
      return {
        connect: async () => ({
          backend: SQL_LOCKS[which]({ url: server.url, createTable: true, connections: 150 }),
          id: nodeRuntime.uuid(),
        }),
        stop: () => server.stop(),
      };
    },
    {
      types: ['reentrant', 'write'],
      publishes: false,
      adopts: false,
      flights: false,
      lines: false,
      joinsQuorums: false,
      sharesOwners: false,
      knowsHolders: false,
      most: 40,
      leaseUnit: kind === 'PostgreSQL' ? 1 : 1_000,
    },
  );
});
