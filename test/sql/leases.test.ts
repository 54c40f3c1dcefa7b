import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { query } from './sessions.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

/** The server counts whole seconds. */
const SHORT = 2_000;
const LONG = 60_000;
/** By then, a server that counts {@link SHORT} has ended the session. */
const PAST = SHORT + 2_500;

describe.each(ALL_SQL_LOCKS)('the lease of a session, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  const itOnMariaDb = kind === 'MariaDB' ? it : it.skip;

  itOnMariaDb('is set again after somebody has killed the statement that sets it', async () => {
    const [locks, name] = [world.service(), world.name()];
    const lease = await locks.acquire(name, { leaseTime: LONG });
    const [{ id }] = await query(
      world.server,
      '',
      `SELECT session AS id FROM locks.${world.table}_state WHERE owner IS NOT NULL`,
    );
    const killer = await mysql.createConnection(world.server.url);
    const extend = (time: number) =>
      lease.extend(time).then(
        () => true,
        (error) => {
          if (!lease.held) throw error;
          return false;
        },
      );
    let isInterrupted = false;
    const killing = (async () => {
      while (!isInterrupted) await killer.query(`KILL QUERY ${id}`).catch(() => {});
    })();
    while (!isInterrupted) {
      while (!(await extend(SHORT)));
      isInterrupted = !(await extend(LONG));
    }
    await killing;
    await killer.end();
    while (!(await extend(LONG)));
    await sleep(PAST);
    expect(lease.held).toBe(true);
    expect(await world.service().tryAcquire(name)).toBeNull();
    await lease.release();
  });

  it('lasts as long as the longest lease of its locks', async () => {
    const locks = world.service({}, { watchdogTimeout: SHORT });
    const [name, other] = [world.name(), world.name()];
    const inner = await locks.withLock([name, other], async () => {
      const lease = await locks.acquire(name);
      await lease.extend(LONG);
      await sleep(SHORT); // the lock beside it is renewed meanwhile
      return lease;
    });
    await sleep(PAST);
    expect(inner.held).toBe(true);
    expect(await world.service().tryAcquire(name)).toBeNull();
    await inner.release();
  });
});
