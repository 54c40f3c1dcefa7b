import { LockUnavailableError } from '../../lib/engine/errors.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import { rowLocks } from '../../lib/sql.js';
import { RecordingLogger } from '../support/lock-world.js';
import { hasGalera, startGalera } from '../support/servers/sql/galera.js';
import type { SqlServer } from '../support/servers/sql/sql-server.js';

(hasGalera ? describe : describe.skip)('row locks on a Galera cluster', () => {
  let nodes: readonly SqlServer[] = [];
  beforeAll(async () => {
    nodes = await startGalera();
  }, 90_000);
  afterAll(() => Promise.all(nodes.map((node) => node.stop())));

  const on = (node: SqlServer, options?: { readonly singlePrimary: boolean }) =>
    createLockService({
      backend: rowLocks({ url: node.url, createTable: true, ...options }),
      logger: new RecordingLogger(),
      shutdownTimeout: 100,
    });

  it('are refused, because each node would give a lock to its own holder', async () => {
    const both = nodes.map((node) => on(node));
    for (let round = 0; round < 20; round++) {
      const taken = await Promise.allSettled(both.map((locks) => locks.acquire(`order:${round}`, { waitTime: 2_000 })));
      const held = taken.filter(({ status }) => status === 'fulfilled');
      expect(held.length).toBeLessThan(2);
      for (const attempt of taken) {
        if (attempt.status === 'fulfilled') continue;
        expect(attempt.reason).toBeInstanceOf(LockUnavailableError);
        expect(attempt.reason.message).toMatch(/node of a Galera cluster \(wsrep_on\).*singlePrimary: true/);
      }
    }
    await Promise.all(both.map((locks) => locks.close()));
  });

  it('are kept for those who say that all clients use one node', async () => {
    const [ann, bob] = [on(nodes[0], { singlePrimary: true }), on(nodes[0], { singlePrimary: true })];
    const lease = await ann.acquire('order');
    expect(await bob.tryAcquire('order')).toBeNull();
    const next = bob.acquire('order');
    await lease.release();
    const later = await next;
    expect(later.fencingToken).toBeGreaterThan(lease.fencingToken);
    await later.release();
    await Promise.all([ann.close(), bob.close()]);
  });
});
