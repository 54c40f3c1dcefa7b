// Row locks beside Redis, and beside the locks that PostgreSQL and MariaDB have anyway, taken by hand. The databases
// write to disk as they do by default.
//   npm run bench:sql [-- <seconds>]    needs redis-server, PostgreSQL and MariaDB
import mysql from 'mysql2/promise';
import pg from 'pg';
import { startRedis } from '../support/servers/redis-server.ts';
import { startSqlServer } from '../support/servers/sql/sql-server.ts';

const LIBRARY = new URL('../../dist/esm/', import.meta.url);
const { createLockService } = await import(new URL('core.js', LIBRARY).href);
const { rowLocks } = await import(new URL('sql.js', LIBRARY).href);

const SECONDS = Number(process.argv[2] ?? 2);
const ROUNDS = 3;
const CALLERS = 64;
const logger = { warn() {}, error() {} };

/** How many callers, the key of each, and the client of each: callers of one client share connections and hand-offs. */
const WORKLOADS = {
  'one caller, one key': { callers: 1, key: () => 'one', client: () => 0 },
  '64 callers, a key each': { callers: CALLERS, key: (n) => `key:${n}`, client: () => 0 },
  '4 callers of 4 clients, one key': { callers: 4, key: () => 'hot', client: (n) => n },
  '4 callers of 1 client, one key': { callers: 4, key: () => 'hot', client: () => 0 },
};

// The handles of the servers do not keep this process alive.
setInterval(() => {}, 1_000);
const redis = await startRedis();
const [postgres, mariadb] = [await startSqlServer('PostgreSQL', 'durable'), await startSqlServer('MariaDB', 'durable')];

/** Each opens a client: a function that runs a body under a lock, and an end. */
const CONTESTANTS = {
  Redis: () => service({ connection: redis.url }),
  'rowLocks, PostgreSQL': () => rows(postgres.url),
  'pg_advisory_lock by hand': () => {
    const pool = new pg.Pool({ connectionString: postgres.url, max: CALLERS });
    const withLock = async (key, body) => {
      const session = await pool.connect();
      await session.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [key]);
      await body();
      await session.query('SELECT pg_advisory_unlock(hashtextextended($1, 0))', [key]);
      session.release();
    };
    return { withLock, close: () => pool.end() };
  },
  'rowLocks, MariaDB': () => rows(mariadb.url),
  'GET_LOCK by hand': () => {
    const pool = mysql.createPool({ uri: mariadb.url, connectionLimit: CALLERS });
    const withLock = async (key, body) => {
      const session = await pool.getConnection();
      await session.query('SELECT GET_LOCK(?, 60)', [key]);
      await body();
      await session.query('SELECT RELEASE_LOCK(?)', [key]);
      session.release();
    };
    return { withLock, close: () => pool.end() };
  },
};

function service(options) {
  const locks = createLockService({ ...options, logger });
  return { withLock: (key, body) => locks.withLock(key, body), close: () => locks.close() };
}

function rows(url) {
  return service({ backend: rowLocks({ url, createTable: true, connections: CALLERS }) });
}

/** Bodies per second. */
async function measure(open, { callers, key, client }) {
  const clients = Array.from({ length: callers }, (_, n) => client(n)).filter((id, n, all) => all.indexOf(id) === n);
  const opened = clients.map(() => open());
  const held = new Set();
  let bodies = 0;
  const call = (n) =>
    opened[client(n)].withLock(key(n), async () => {
      if (held.has(key(n))) throw new Error(`${key(n)} is held twice`);
      held.add(key(n));
      await undefined;
      held.delete(key(n));
      bodies++;
    });
  const callersFor = async (seconds) => {
    const end = performance.now() + seconds * 1_000;
    const run = async (n) => {
      while (performance.now() < end) await call(n);
    };
    await Promise.all(Array.from({ length: callers }, (_, n) => run(n)));
  };
  await callersFor(0.5);
  bodies = 0;
  const started = performance.now();
  await callersFor(SECONDS);
  const rate = (bodies * 1_000) / (performance.now() - started);
  await Promise.all(opened.map((each) => each.close()));
  return rate;
}

const results = new Map();
// In turns, so that a machine that is busy for a while is so for all.
for (let round = 0; round < ROUNDS; round++)
  for (const [title, workload] of Object.entries(WORKLOADS))
    for (const [name, open] of Object.entries(CONTESTANTS)) {
      const of = `${title} ${name}`;
      results.set(of, [...(results.get(of) ?? []), await measure(open, workload)]);
    }

const median = (rates) => rates.sort((a, b) => a - b)[Math.floor(rates.length / 2)];
const names = Object.keys(CONTESTANTS);
console.log(`Bodies per second, medians of ${ROUNDS} rounds of ${SECONDS} s; in brackets: the share of Redis's\n`);
console.log(`| | ${names.join(' | ')} |\n| --- |${names.map(() => ' ---: |').join('')}`);
for (const title of Object.keys(WORKLOADS)) {
  const rates = names.map((name) => median(results.get(`${title} ${name}`)));
  const cells = rates.map((rate) => `${Math.round(rate).toLocaleString('en')} (${(rate / rates[0]).toFixed(2)})`);
  console.log(`| ${title} | ${cells.join(' | ')} |`);
}
await Promise.all([redis.stop(), postgres.stop(), mariadb.stop()]);
process.exit(0);
