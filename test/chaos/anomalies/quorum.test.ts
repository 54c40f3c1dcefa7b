import { setTimeout as sleep } from 'node:timers/promises';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { startTcpProxy } from '../../support/network/tcp-proxy.js';
import { startRedis } from '../../support/servers/redis-server.js';

/** One of three nodes was down when the lock was granted, and another one loses it afterwards. */
describe('a quorum with a node that restarts', () => {
  it('gives a lock a second owner if the node has forgotten it', async () => {
    const { first, second } = await acquireTwice([]);
    expect([first.held, second?.held]).toEqual([true, true]);
    expect(second?.fencingToken).toBeGreaterThan(first.fencingToken);
  });

  it('does not if nodes write each command to disk before they answer', async () => {
    const { first, second } = await acquireTwice(['--appendonly', 'yes', '--appendfsync', 'always']);
    expect(first.held).toBe(true);
    expect(second).toBeNull();
  });

  async function acquireTwice(args: readonly string[]) {
    const nodes = await Promise.all([1, 2, 3].map(() => startRedis({ args })));
    const [, forgetful, late] = nodes;
    const proxies = await Promise.all(nodes.map(({ port }) => startTcpProxy(port)));
    const open = (servers: readonly { readonly url: string }[]) =>
      createLockService({
        quorum: servers.map(({ url }) => url),
        shutdownTimeout: 100,
        commandTimeout: 1_000,
        logger: { warn: () => {}, error: () => {} },
      });
    const [one, other] = [open(proxies), open(nodes)];
    try {
      await late.kill();
      const first = await one.acquire('stock', { leaseTime: '1m' });
      // From now on, the first owner cannot notice the loss, and relies on its lease of a minute.
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      // By then, the request to the node that was down can no longer be executed.
      await sleep(1_500);
      await late.start();
      await forgetful.restart();
      const second = await other.tryAcquire('stock', { leaseTime: '1m', waitTime: '3s' });
      return {
        first: { held: first.held, fencingToken: first.fencingToken },
        second: second && { held: second.held, fencingToken: second.fencingToken },
      };
    } finally {
      await Promise.all([one.close(), other.close()]);
      await Promise.all([...nodes, ...proxies].map((server) => server.stop()));
    }
  }
});
