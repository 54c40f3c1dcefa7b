import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError, LockLostError } from '../../lib/engine/errors.js';
import { startTcpProxy } from '../support/network/tcp-proxy.js';
import { startProcess } from '../support/processes/start-process.js';
import { until } from '../support/until.js';
import { query, startAgain } from './sessions.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld, type SqlWorld } from './sql-world.js';

const LEASE = 3_000;

describe.each(ALL_SQL_LOCKS)('the loss of a lock in SQL, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  const startHolder = async (name: string, watchdogTimeout = LEASE) => {
    const { child, line } = await startProcess(
      'sql-lock-holder.ts',
      world.locks,
      world.server.url,
      name,
      String(watchdogTimeout),
    );
    return { child, token: Number(line.split(' ')[1]) };
  };

  it('frees the lock at once when its holder is killed, and tokens grow over holders that were killed in turn', async () => {
    const name = world.name();
    const tokens: number[] = [];
    for (let round = 0; round < 2; round++) {
      const holder = await startHolder(name, 60_000);
      tokens.push(holder.token);
      const next = world.service().acquire(name);
      await sleep(300);
      const killed = performance.now();
      holder.child.kill('SIGKILL');
      const lease = await next;
      // Its lease has a minute left.
      expect(performance.now() - killed).toBeLessThan(3_000);
      tokens.push(lease.fencingToken);
      await lease.release();
    }
    expect([...tokens].sort((a, b) => a - b)).toEqual(tokens);
    expect(new Set(tokens).size).toBe(tokens.length);
  });

  it('continues with tokens above those of a clock that was ahead', async () => {
    const [locks, name] = [world.service(), world.name()];
    const ahead = Date.now() * 1_000 + 3_600_000_000;
    await (await locks.acquire(name)).release();
    const advance = `UPDATE ${world.table}_state SET token = ${ahead}, reserved = 0 WHERE lock_name = 'lock:${name}'`;
    await query(world.server, advance, advance);
    const tokens: number[] = [];
    for (let round = 0; round < 3; round++) {
      const lease = await locks.acquire(name);
      tokens.push(lease.fencingToken);
      await lease.release();
    }
    expect(tokens).toEqual([ahead + 1, ahead + 2, ahead + 3]);
  });

  it('frees the lock of a holder that is stopped within its lease, and not before', async () => {
    const name = world.name();
    const { child } = await startHolder(name);
    child.kill('SIGSTOP');
    const stopped = performance.now();
    const locks = world.service();
    const lease = await locks.acquire(name, { waitTime: 30_000 });
    const waited = performance.now() - stopped;
    child.kill('SIGKILL');
    expect(waited).toBeGreaterThan(LEASE / 3);
    expect(waited).toBeLessThan(LEASE + 2_500);
    await lease.release();
  });

  it('keeps the lock of a holder that works for longer than its lease', async () => {
    const [ann, bob] = [world.service({}, { watchdogTimeout: LEASE }), world.service()];
    const name = world.name();
    const lease = await ann.acquire(name);
    expect(await bob.tryAcquire(name, { waitTime: 3 * LEASE })).toBeNull();
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('ends a fixed lease in time, without the watchdog', async () => {
    const [ann, bob] = [world.service(), world.service()];
    const name = world.name();
    const lease = await ann.acquire(name, { leaseTime: 1_000 });
    const next = await bob.acquire(name, { waitTime: 15_000 });
    expect(lease.held).toBe(false);
    await expect(lease.release()).rejects.toThrow(LockLostError);
    await next.release();
  });

  it('is reported at once when the session is ended, by signal, event and error', async () => {
    const [locks, name] = [world.service(), world.name()];
    const events: string[] = [];
    locks.on('lost', ({ name: lost }) => events.push(lost));
    const body = locks.withLock(name, async (lease) => {
      await endSessions(world);
      await until(() => lease.signal.aborted);
    });
    await expect(body).rejects.toThrow(LockLostError);
    await expect(body).rejects.toThrow(/the connection to the database has ended/);
    expect(events).toEqual([name]);
    await (await locks.acquire(name)).release();
  });

  it('is informed of a release by force, of this process or of another one', async () => {
    const [ann, bob] = [world.service(), world.service()];
    for (const by of [ann, bob]) {
      const name = world.name();
      const lease = await ann.acquire(name);
      expect((await bob.inspect(name)).owners).toMatchObject([{ owner: lease.owner, mine: false }]);
      expect(await by.forceRelease(name)).toBe(true);
      await until(() => lease.signal.aborted);
      await (await bob.acquire(name, { waitTime: 5_000 })).release();
      expect(await by.forceRelease(name)).toBe(false);
    }
  });

  it('is noticed by a holder whose connection carries nothing any more, before others get the lock', async () => {
    const proxy = await startTcpProxy(world.server.port);
    const name = world.name();
    const cut = world.service({ url: world.server.urlAt(proxy.port) }, { watchdogTimeout: LEASE });
    const lease = await cut.acquire(name);
    let noticed = 0;
    lease.signal.addEventListener('abort', () => {
      noticed = performance.now();
    });
    proxy.cutHalfOpen();
    const next = await world.service().acquire(name, { waitTime: 30_000 });
    expect(noticed).toBeGreaterThan(0);
    expect(lease.held).toBe(false);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
    await proxy.heal();
    await (await cut.acquire(name, { waitTime: 30_000 })).release();
    await proxy.stop();
  });

  it('frees the lock at once when the connection of its holder is cut', async () => {
    const proxy = await startTcpProxy(world.server.port);
    const name = world.name();
    const cut = world.service({ url: world.server.urlAt(proxy.port) }, { watchdogTimeout: 60_000 });
    const lease = await cut.acquire(name);
    proxy.disconnect();
    await until(() => lease.signal.aborted);
    const next = await world.service().acquire(name, { waitTime: 10_000 });
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
    await (await cut.acquire(name, { waitTime: 30_000 })).release();
    await proxy.stop();
  });

  it('survives the death of the server: held locks are lost, waiters continue when it is back', async () => {
    const [ann, bob] = [world.service(), world.service()];
    const name = world.name();
    const lease = await ann.acquire(name);
    const next = bob.acquire(name);
    await sleep(300);
    await world.server.kill();
    await until(() => lease.signal.aborted);
    await startAgain(world.server);
    const later = await next;
    expect(later.fencingToken).toBeGreaterThan(lease.fencingToken);
    await later.release();
  });

  it.each(['read', 'fair', 'fenced'] as const)('refuses a %s lock with the reason', async (type) => {
    const locks = world.service();
    const refused = locks.acquire(world.name(), { type });
    await expect(refused).rejects.toThrow(LockConfigurationError);
    await expect(refused).rejects.toThrow(new RegExp(`has no locks of type '${type}': .*use`));
  });
});

async function endSessions({ server, table, locks }: SqlWorld): Promise<void> {
  const idle = await query(
    server,
    locks === 'rowLocks'
      ? "SELECT pid AS id FROM pg_stat_activity WHERE usename = 'locks' AND state LIKE 'idle in%'"
      : "SELECT DISTINCT pid AS id FROM pg_locks WHERE locktype = 'advisory' AND granted",
    `SELECT ID AS id FROM information_schema.PROCESSLIST p JOIN locks.${table}_state s ON s.session = p.ID AND s.owner IS NOT NULL`,
  );
  for (const { id } of idle) await query(server, `SELECT pg_terminate_backend(${id})`, `KILL CONNECTION ${id}`);
}
