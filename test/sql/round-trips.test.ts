import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createLockService } from '../../lib/service/create-lock-service.js';
import { RecordingLogger } from '../support/lock-world.js';
import { type SqlServer, startSqlServer } from '../support/servers/sql/sql-server.js';
import { until } from '../support/until.js';
import { query } from './sessions.js';
import { SQL_LOCKS, type SqlLocks } from './sql-locks.js';

/** Counts by the server's own log, which has a line for each text that it receives, with or without parameters. */
describe('the round trips of locks in SQL, by the log of PostgreSQL', () => {
  let server: SqlServer;
  beforeAll(async () => {
    server = await startSqlServer('PostgreSQL', 'fast', ['log_statement=all']);
  }, 60_000);
  afterAll(() => server?.stop());

  const open = (which: SqlLocks) =>
    createLockService({
      backend: SQL_LOCKS[which]({ url: server.url, createTable: true, connections: 30 }),
      logger: new RecordingLogger(),
      shutdownTimeout: 100,
    });
  const sent = (text: RegExp) =>
    server.log.match(new RegExp(`(statement|execute [^:]*): ${text.source}`, 'g'))?.length ?? 0;

  /** Waits until the log has arrived here. The server writes it in order. */
  const logged = async () => {
    const mark = randomUUID();
    await query(server, `SELECT '${mark}'`, '');
    await until(() => server.log.includes(mark));
  };

  const FREE = { rowLocks: [40, 40, 40, 0, 0, 0, 0], advisoryLocks: [0, 0, 0, 0, 0, 40, 40] };
  it.each([
    ['rowLocks', 'acquire', {}],
    ['rowLocks', 'try', { waitTime: 0 }],
    ['advisoryLocks', 'acquire', {}],
    ['advisoryLocks', 'try', { waitTime: 0 }],
  ] as const)(
    'are three for a row lock that is free, and two for an advisory lock, %s: %s',
    async (which, _how, options) => {
      const locks = open(which);
      const name = 'order:it\'s \\ "1"';
      await (await locks.acquire(name)).release();
      const counts = () =>
        [
          /BEGIN/,
          /WITH source/,
          /COMMIT/,
          /SELECT .*FOR UPDATE/,
          /SELECT 1/,
          /.*pg_try_advisory/,
          /.*pg_advisory_unlock/,
        ].map(sent);
      await logged();
      const before = counts();
      for (let round = 0; round < 40; round++) await (await locks.acquire(name, options)).release();
      await logged();
      expect(counts().map((count, n) => count - before[n])).toEqual(FREE[which]);
      await locks.close();
    },
  );

  it('note many holders in one statement while another one is under way', async () => {
    const locks = open('rowLocks');
    const names = Array.from({ length: 30 }, (_, n) => `stock:${n}`);
    for (const lease of await Promise.all(names.map((name) => locks.acquire(name)))) await lease.release();
    const other = new pg.Client(server.url);
    await other.connect();
    await other.query('BEGIN');
    await other.query("SELECT 1 FROM distributed_lock_state WHERE lock_name = 'lock:stock:0' FOR UPDATE");
    const [notes, begun] = [sent(/WITH source/), sent(/BEGIN ISOLATION/)];
    const first = locks.acquire(names[0]);
    await until(() => sent(/WITH source/) > notes);
    const rest = names.slice(1).map((name) => locks.acquire(name));
    await until(() => sent(/BEGIN ISOLATION/) === begun + 30);
    await other.query('ROLLBACK');
    const leases = await Promise.all([first, ...rest]);
    expect(new Set(leases.map(({ owner }) => owner)).size).toBe(30);
    // The first one, all that arrived meanwhile, and stragglers.
    expect(sent(/WITH source/) - notes).toBeLessThan(10);
    // The first one occupied only its own connection.
    const senders = [...server.log.matchAll(/\[(\d+)\] LOG: .*execute [^:]*: WITH source/g)].map(([, pid]) => pid);
    expect(new Set(senders.slice(-(sent(/WITH source/) - notes))).size).toBe(2);
    for (const lease of leases) await lease.release();
    await other.end();
    await locks.close();
  });
});

describe('the transaction numbers that locks in SQL use up, by PostgreSQL', () => {
  let server: SqlServer;
  beforeAll(async () => {
    server = await startSqlServer('PostgreSQL');
  }, 60_000);
  afterAll(() => server?.stop());

  const given = async () => {
    const [{ next }] = await query(server, 'SELECT txid_snapshot_xmax(txid_current_snapshot()) AS next', '');
    return Number(next);
  };

  it.each([
    ['rowLocks', 200],
    ['advisoryLocks', 100],
  ] as const)('by 100 %s are %d', async (which, most) => {
    const locks = createLockService({
      backend: SQL_LOCKS[which]({ url: server.url, createTable: true }),
      logger: new RecordingLogger(),
      shutdownTimeout: 100,
    });
    await (await locks.acquire('order:1')).release();
    const before = await given();
    for (let round = 0; round < 100; round++) await (await locks.acquire('order:1')).release();
    const used = (await given()) - before;
    expect(used).toBeGreaterThanOrEqual(most);
    // The record of the client, and the server's own work.
    expect(used).toBeLessThan(most + 20);
    await locks.close();
  });
});

/** What was written to the disk, which PostgreSQL has counted in another place since version 18. */
const SYNCED = {
  14: 'SELECT wal_sync AS count FROM pg_stat_wal',
  18: "SELECT sum(fsyncs) AS count FROM pg_stat_io WHERE object = 'wal'",
};

describe('the writes to the disk of row locks, by the statistics of PostgreSQL', () => {
  it('are few, however many locks are taken', async () => {
    // At this interval the server itself writes what no commit waits for.
    const server = await startSqlServer('PostgreSQL', 'durable', ['wal_writer_delay=10s']);
    const locks = createLockService({
      backend: SQL_LOCKS.rowLocks({ url: server.url, createTable: true }),
      logger: new RecordingLogger(),
      shutdownTimeout: 100,
    });
    const [{ version }] = await query(server, "SELECT current_setting('server_version_num') AS version", '');
    const isNew = Number(version) >= 180_000;
    const synced = async () => {
      const [{ count }] = await query(server, SYNCED[isNew ? 18 : 14], '');
      return Number(count);
    };
    await (await locks.acquire('order:0')).release();
    const before = await synced();
    // New names too, for which rows are inserted.
    for (let round = 0; round < 200; round++) await (await locks.acquire(`order:${round % 50}`)).release();
    // Sessions report their statistics only after a second of work.
    await sleep(1_500);
    await (await locks.acquire('order:0')).release();
    await sleep(200);
    expect((await synced()) - before).toBeLessThan(40);
    await locks.close();
    await server.stop();
  });
});
