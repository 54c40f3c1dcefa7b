import { startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { BlockedWorld, LEASE, run, startBlocked } from './blocked-process.js';

describe('locks of a process whose event loop is blocked', () => {
  const world = new BlockedWorld();

  it('are shown with the time for which it has been blocked', async () => {
    const blocked = startBlocked(['recorded'], { connection: world.server.url });
    const clients = async () => (await world.others.clients()).filter(({ blockedFor = 0 }) => blockedFor > 0);
    await until(async () => (await clients()).length > 0);
    const [first] = await clients();
    expect(first).toMatchObject({ pid: blocked.child.pid, held: 1, mine: false });
    expect(first.blockedFor).toBeLessThan(30_000);
    await blocked.done();
    expect(blocked.of('recorded').belief).toMatchObject({ held: true });
  });

  it('are lost when keepWhileBlocked is over, one lease later at the latest, which the log says', async () => {
    const blocked = startBlocked(
      ['reentrant'],
      { connection: world.server.url },
      { options: { keepWhileBlocked: 2_000 } },
    );
    await blocked.ready();
    const since = performance.now();
    const lease = await world.others.acquire('reentrant', { waitTime: '20s' });
    const waited = performance.now() - since;
    expect(waited).toBeGreaterThan(1_500);
    expect(waited).toBeLessThan(2_000 + LEASE + 2_000);
    await blocked.done();
    await lease.release();
    expect(blocked.of('reentrant').belief).toMatchObject({ held: false, aborted: true });
    expect(blocked.warnings).toContainEqual(
      expect.stringContaining('Nothing was renewed after keepWhileBlocked (2.0 s) was over'),
    );
  });

  it('are kept no longer than holdAtLeast says after their body', async () => {
    const blocked = startBlocked(['atLeast'], { connection: world.server.url });
    await blocked.done();
    expect(blocked.of('atLeast')).toMatchObject({ belief: { held: true }, end: { result: 'result' } });
    expect(await world.redis.pttl('lock:atLeast')).toBeLessThanOrEqual(1_000);
  });

  it('can be detached afterwards', async () => {
    const blocked = startBlocked(['detached'], { connection: world.server.url });
    await blocked.done();
    expect(blocked.of('detached')).toMatchObject({ belief: { held: true }, end: { result: 'result' } });
    expect(await world.redis.pttl('lock:detached')).toBeLessThanOrEqual(500);
  });

  it('end with their process, or while it is stopped', async () => {
    const blocked = startBlocked(['reentrant', 'fenced'], { connection: world.server.url }, { block: 60_000 });
    await blocked.ready();
    blocked.child.kill('SIGSTOP');
    const lease = await world.others.acquire('reentrant', { waitTime: '20s' });
    blocked.child.kill('SIGKILL');
    await (await world.others.acquire('fenced', { type: 'fenced', waitTime: '20s' })).release();
    await lease.release();
  });

  it.each(['node-redis', 'ioredis'])('are kept with options of %s', async (client) => {
    const { port } = world.server;
    const connection =
      client === 'ioredis'
        ? { connection: { host: '127.0.0.1', port } }
        : { connection: { client, socket: { host: '127.0.0.1', port } } };
    const blocked = startBlocked(['reentrant', 'semaphore'], connection);
    await blocked.done();
    for (const kind of ['reentrant', 'semaphore'])
      expect(blocked.of(kind)).toMatchObject({ belief: { held: true }, end: { result: 'result' } });
  });

  it('are kept while a server of Redis stalls for a part of a lease', async () => {
    const blocked = startBlocked(
      ['reentrant'],
      { connection: world.server.url },
      { options: { watchdogTimeout: 4_000, commandTimeout: 500 }, block: 9_000 },
    );
    await blocked.ready();
    for (let n = 0; n < 5; n++) {
      process.kill(world.server.pid, 'SIGSTOP');
      await new Promise((resolve) => setTimeout(resolve, 700));
      process.kill(world.server.pid, 'SIGCONT');
      await new Promise((resolve) => setTimeout(resolve, 700));
    }
    await blocked.done();
    expect(blocked.of('reentrant')).toMatchObject({ belief: { held: true }, end: { result: 'result' } });
  });

  it('are kept in a quorum', async () => {
    const more = await Promise.all([startRedis(), startRedis()]);
    try {
      const blocked = startBlocked(['reentrant', 'write'], {
        quorum: [world.server.url, ...more.map(({ url }) => url)],
      });
      await blocked.done();
      for (const kind of ['reentrant', 'write'])
        expect(blocked.of(kind)).toMatchObject({ belief: { held: true }, end: { result: 'result' } });
    } finally {
      await Promise.all(more.map((one) => one.stop()));
    }
  });

  it('are kept by another thread after the first one has died', async () => {
    const { child, said } = run('dying-standby.ts', [world.server.url]);
    await until(() => said.some(({ held }) => held !== undefined));
    expect(said).toContainEqual({ held: true });
    expect(said).toContainEqual({
      warning: expect.stringMatching(
        /^keepWhileBlocked: the thread has ended: out of memory\. .* is started in \d+ ms$/,
      ),
    });
    await new Promise((resolve) => (child.exitCode === null ? child.once('exit', resolve) : resolve(undefined)));
    expect(child.exitCode).toBe(0);
  });
});
