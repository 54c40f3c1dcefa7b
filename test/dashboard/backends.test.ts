import { startNodes } from '../backends/quorum/redis-nodes.js';
import { freePort } from '../support/servers/free-port.js';
import { type DashboardApp, openDashboard } from './dashboard-app.js';

describe('a dashboard', () => {
  let app: DashboardApp | undefined;
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  it('of a quorum says that its locks cannot be listed, and what to do; it can still release one', async () => {
    const servers = await startNodes(3);
    try {
      app = await openDashboard({
        locks: { quorum: servers.map(({ url }) => url) },
        dashboard: { readOnly: false },
      });
      const { outage, summary } = await app.board();
      expect(outage.message).toMatch(
        /^list\(\): the backend \(.+\) cannot list locks; ask a service with a connection/,
      );
      expect(summary.held).toBe(0);
      const lease = await app.locks.acquire('order:42');
      const release = { reason: 'the worker hangs', owners: [lease.owner] };
      expect(await app.release('order:42', release)).toEqual({ status: 200 });
      expect(await app.locks.isLocked('order:42')).toBe(false);
    } finally {
      await app?.close();
      app = undefined;
      await Promise.all(servers.map((server) => server.stop()));
    }
  });

  it('without Redis says why, without a password', async () => {
    const port = await freePort();
    app = await openDashboard({
      locks: { connection: `redis://ann:hunter2@127.0.0.1:${port}`, commandTimeout: 500 },
      dashboard: { readOnly: false },
    });
    const board = await app.board();
    expect(board.outage.message).toContain(`127.0.0.1:${port}`);
    const answer = await app.release('order:42', { reason: 'the worker hangs' });
    expect(answer.status).toBe(503);
    expect(JSON.stringify([board, answer, app.logger.lines])).not.toContain('hunter2');
  });
});
