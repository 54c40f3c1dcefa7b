import { describeLockBackend } from '../../contract/describe-lock-backend.js';
import { connectQuorum, QUORUM, startNodes } from './redis-nodes.js';

/** Runs the contract of a backend on a quorum of this many servers. */
export function describeQuorum(count: number): void {
  describeLockBackend(
    `QuorumBackend, ${count} RedisBackends`,
    async () => {
      const servers = await startNodes(count);
      return {
        connect: async () => connectQuorum(servers, { commandTimeout: 5_000, nodeTimeout: 4_000 }),
        stop: async () => void (await Promise.all(servers.map((server) => server.stop()))),
      };
    },
    { ...QUORUM, nodesLag: true },
  );
}
