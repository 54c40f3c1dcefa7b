import { setTimeout as sleep } from 'node:timers/promises';
import { startTcpProxy } from '../support/network/tcp-proxy.js';
import { until } from '../support/until.js';
import { lockState } from './sessions.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

describe.each(ALL_SQL_LOCKS)('many who want locks at once, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  it('are all served, without an error of the database', async () => {
    const name = world.name();
    const services = Array.from({ length: 4 }, () => world.service());
    const errors: string[] = [];
    let inside = 0;
    for (const locks of services) locks.on('error', (error) => errors.push(String(error)));
    const caller = async (locks: (typeof services)[number]) => {
      for (let round = 0; round < 150; round++) {
        try {
          const lease = await locks.acquire(name);
          expect(++inside).toBe(1);
          inside--;
          await lease.release();
        } catch (error) {
          errors.push(String(error));
        }
      }
    };
    await Promise.all(services.map(caller));
    expect(errors).toEqual([]);
    expect(world.logger.warnings).toEqual([]);
  });

  it('are served although others lock the state of their lock for a moment', async () => {
    const [ann, name] = [world.service(), world.name()];
    await (await ann.acquire(name)).release();
    const unlock = await lockState(world, name);
    const acquired = ann.acquire(name, { waitTime: 0 });
    await Promise.race([acquired.catch(() => {}), sleep(300)]);
    await unlock();
    await (await acquired).release();
  });

  it('are served however long the control connection takes for all of them together', async () => {
    const proxy = await startTcpProxy(world.server.port);
    const locks = world.service({ url: world.server.urlAt(proxy.port), connections: 30 });
    await (await locks.acquire(world.name())).release();
    proxy.delay(50);
    const leases = await Promise.allSettled(
      Array.from({ length: 30 }, () => locks.acquire(world.name(), { waitTime: 0 })),
    );
    proxy.delay(0);
    expect(leases.flatMap((lease) => (lease.status === 'rejected' ? [String(lease.reason)] : []))).toEqual([]);
    await locks.close();
    await proxy.stop();
  });

  it('are not disturbed by a release by force that means a lock which their session held before', async () => {
    const [ann, bob] = [world.service({ connections: 1 }), world.service()];
    const [before, later] = [world.name(), world.name()];
    const first = await ann.acquire(before);
    // What bob has read is outdated by the time he acts on it.
    const server = (bob.engine.services.backend as unknown as { tools: { server: Killer } }).tools.server;
    const kill = server.kill.bind(server);
    let second: Awaited<ReturnType<typeof ann.acquire>> | undefined;
    server.kill = async (...args) => {
      await first.release();
      second = await ann.acquire(later);
      return kill(...args);
    };
    expect(await bob.forceRelease(before)).toBe(false);
    await until(async () => (await bob.inspect(later)).locked);
    expect(second?.held).toBe(true);
    expect(second?.signal.aborted).toBe(false);
    await second?.release();
  });
});

interface Killer {
  kill(...args: unknown[]): Promise<unknown>;
}
