// Compares locks in a database with handwritten ones, with and without fencing tokens, and with Redis. The databases
// write to disk as they do by default.
//   npm run bench:sql [-- <seconds> [<names>]]    needs redis-server, PostgreSQL and MariaDB
// BASELINE=<dist/esm of another checkout> compares its locks, too.
// <names>: a regular expression of those to compare. The last column is relative to the first of them.
import { pathToFileURL } from 'node:url';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { startRedis } from '../support/servers/redis-server.ts';
import { startSqlServer } from '../support/servers/sql/sql-server.ts';

/** The library in a folder with a build. */
const load = async (folder) => ({
  ...(await import(new URL('core.js', folder).href)),
  ...(await import(new URL('sql.js', folder).href)),
});
const library = await load(new URL('../../dist/esm/', import.meta.url));
const { BASELINE } = process.env;
const baseline = BASELINE && (await load(pathToFileURL(`${BASELINE}/`)));

const SECONDS = Number(process.argv[2] ?? 2);
const NAMES = new RegExp(process.argv[3] ?? '', 'i');
const ROUNDS = 3;
const MOST = 64;
const logger = { warn() {}, error() {} };

/** The number of callers, and the key and the client of each. Callers of one client share connections and hand-offs. */
const WORKLOADS = {
  'one caller': { callers: 1, key: () => 'one', client: () => 0 },
  '4 callers, a key each': { callers: 4, key: (n) => `key:${n}`, client: () => 0 },
  '64 callers, a key each': { callers: MOST, key: (n) => `key:${n}`, client: () => 0 },
  '4 callers of 4 clients, one key': { callers: 4, key: () => 'hot', client: (n) => n },
};

/** An ordinary PostgreSQL, and one whose writes to the disk take 2 ms longer. */
const SERVERS = {
  Redis: () => startRedis(),
  PostgreSQL: () => startSqlServer('PostgreSQL', 'durable'),
  'PostgreSQL, 2 ms': () => startSqlServer('PostgreSQL', 'durable', ['commit_delay=2000', 'commit_siblings=0']),
  MariaDB: () => startSqlServer('MariaDB', 'durable'),
};

/**
 * Each opens a client by the URL of its server, and returns a function that runs a body under a lock, and one that
 * closes the client.
 */
const CONTESTANTS = [
  { name: 'Redis', server: 'Redis', open: (url) => service({ connection: url }) },
  ...['PostgreSQL', 'PostgreSQL, 2 ms'].flatMap((server) => [
    ...locksOf(server),
    { name: `FOR UPDATE by hand, ${server}`, server, open: (url) => postgresRows(url) },
    { name: `FOR UPDATE and a token, ${server}`, server, open: (url) => postgresRows(url, 'off') },
    { name: `FOR UPDATE and a token on the disk, ${server}`, server, open: (url) => postgresRows(url, 'on') },
    { name: `pg_advisory_lock by hand, ${server}`, server, open: (url) => postgresAdvisory(url) },
  ]),
  ...locksOf('MariaDB'),
  { name: 'FOR UPDATE by hand, MariaDB', server: 'MariaDB', open: (url) => mariadbRows(url) },
  { name: 'FOR UPDATE and a token, MariaDB', server: 'MariaDB', open: (url) => mariadbRows(url, true) },
  { name: 'GET_LOCK by hand, MariaDB', server: 'MariaDB', open: (url) => mariadbGetLock(url) },
].filter(({ name }) => NAMES.test(name));

/** The kinds of locks of this library. */
function locksOf(server) {
  const kinds = [
    ['rowLocks', library, 'rowLocks'],
    ['advisoryLocks', library, 'advisoryLocks'],
    ['rowLocks before', baseline, 'rowLocks'],
  ];
  return kinds
    .filter(([, from]) => from)
    .map(([kind, from, make]) => ({ name: `${kind}, ${server}`, server, open: (url) => locksAt(url, from, make) }));
}

function service(options, { createLockService } = library) {
  const locks = createLockService({ ...options, logger });
  return { withLock: (key, body) => locks.withLock(key, body), close: () => locks.close() };
}

function locksAt(url, from, make) {
  return service({ backend: from[make]({ url, createTable: true, connections: MOST }) }, from);
}

/**
 * @param tokens each lock writes one, in autocommit, on one connection for all: with `synchronous_commit` on or off. By
 * default none.
 */
async function postgresRows(url, tokens) {
  const pool = new pg.Pool({ connectionString: url, max: MOST });
  const control = new pg.Client(url);
  await control.connect();
  await control.query('CREATE TABLE IF NOT EXISTS by_hand (name text PRIMARY KEY)');
  await control.query('CREATE TABLE IF NOT EXISTS by_hand_token (name text PRIMARY KEY, token bigint NOT NULL)');
  if (tokens !== undefined) await control.query(`SET synchronous_commit = ${tokens}`);
  const made = new Set();
  const make = async (key) => {
    if (made.has(key)) return;
    for (const insert of ['by_hand (name) VALUES ($1)', 'by_hand_token (name, token) VALUES ($1, 0)'])
      await control.query(`INSERT INTO ${insert} ON CONFLICT DO NOTHING`, [key]);
    made.add(key);
  };
  const next = 'greatest(token + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint)';
  let last = Promise.resolve();
  const token = (key) => {
    const text = `UPDATE by_hand_token SET token = ${next} WHERE name = $1 RETURNING token`;
    last = last.then(() => control.query(text, [key]));
    return last;
  };
  return {
    async withLock(key, body) {
      await make(key);
      const session = await pool.connect();
      // The usual way: three statements, and one more for the token.
      await session.query('BEGIN');
      await session.query('SELECT 1 FROM by_hand WHERE name = $1 FOR UPDATE', [key]);
      if (tokens !== undefined) await token(key);
      await body();
      await session.query('COMMIT');
      session.release();
    },
    close: () => Promise.all([pool.end(), control.end()]),
  };
}

function postgresAdvisory(url) {
  const pool = new pg.Pool({ connectionString: url, max: MOST });
  const withLock = async (key, body) => {
    const session = await pool.connect();
    await session.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [key]);
    await body();
    await session.query('SELECT pg_advisory_unlock(hashtextextended($1, 0))', [key]);
    session.release();
  };
  return { withLock, close: () => pool.end() };
}

/** @param hasTokens each lock writes one, in autocommit, on one connection for all */
async function mariadbRows(url, hasTokens = false) {
  const pool = mysql.createPool({ uri: url, connectionLimit: MOST });
  const control = await mysql.createConnection(url);
  await control.query('CREATE TABLE IF NOT EXISTS by_hand (name varbinary(255) PRIMARY KEY)');
  await control.query('CREATE TABLE IF NOT EXISTS by_hand_token (name varbinary(255) PRIMARY KEY, token bigint)');
  const made = new Set();
  const make = async (key) => {
    if (made.has(key)) return;
    await control.query('INSERT IGNORE INTO by_hand VALUES (?)', [key]);
    await control.query('INSERT IGNORE INTO by_hand_token VALUES (?, 0)', [key]);
    made.add(key);
  };
  const token = (key) =>
    control.query('UPDATE by_hand_token SET token = LAST_INSERT_ID(token + 1) WHERE name = ?', [key]);
  return {
    async withLock(key, body) {
      await make(key);
      const session = await pool.getConnection();
      await session.query('START TRANSACTION');
      await session.query('SELECT 1 FROM by_hand WHERE name = ? FOR UPDATE', [key]);
      if (hasTokens) await token(key);
      await body();
      await session.query('COMMIT');
      session.release();
    },
    close: () => Promise.all([pool.end(), control.end()]),
  };
}

function mariadbGetLock(url) {
  const pool = mysql.createPool({ uri: url, connectionLimit: MOST });
  const withLock = async (key, body) => {
    const session = await pool.getConnection();
    await session.query('SELECT GET_LOCK(?, 60)', [key]);
    await body();
    await session.query('SELECT RELEASE_LOCK(?)', [key]);
    session.release();
  };
  return { withLock, close: () => pool.end() };
}

/** Bodies per second. */
async function measure({ open, server }, { callers, key, client }) {
  const clients = Array.from({ length: callers }, (_, n) => client(n)).filter((id, n, all) => all.indexOf(id) === n);
  const opened = await Promise.all(clients.map(() => open(servers.get(server).url)));
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

// The servers' handles do not keep this process alive.
setInterval(() => {}, 1_000);
const servers = new Map();
for (const { server } of CONTESTANTS) if (!servers.has(server)) servers.set(server, await SERVERS[server]());

const results = new Map();
// In turns, so that a temporarily busy machine affects all of them alike.
for (let round = 0; round < ROUNDS; round++)
  for (const [title, workload] of Object.entries(WORKLOADS))
    for (const contestant of CONTESTANTS) {
      const of = `${title} ${contestant.name}`;
      results.set(of, [...(results.get(of) ?? []), await measure(contestant, workload)]);
    }

const median = (rates) => rates.sort((a, b) => a - b)[Math.floor(rates.length / 2)];
const titles = Object.keys(WORKLOADS);
console.log(`Bodies per second, medians of ${ROUNDS} rounds of ${SECONDS} s; in brackets: relative to the first row\n`);
console.log(`| | ${titles.join(' | ')} |\n| --- |${titles.map(() => ' ---: |').join('')}`);
for (const { name } of CONTESTANTS) {
  const cells = titles.map((title) => {
    const [rate, first] = [name, CONTESTANTS[0].name].map((of) => median(results.get(`${title} ${of}`)));
    return `${Math.round(rate).toLocaleString('en')} (${(rate / first).toFixed(2)})`;
  });
  console.log(`| ${name} | ${cells.join(' | ')} |`);
}
await Promise.all([...servers.values()].map((server) => server.stop()));
process.exit(0);
