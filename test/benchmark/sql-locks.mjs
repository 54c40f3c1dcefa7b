// Compares locks in a database with handwritten ones, with and without fencing tokens. All run in turns in one process,
// so that a temporarily busy machine affects all of them alike. The databases write to disk as they do by default.
//   npm run bench -- sql [ PostgreSQL | MariaDB] [--before <commit>] [--rounds <number>]
// --before adds the row locks of an earlier commit (or of a folder with a build of it).
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { startSqlServer } from '../support/servers/sql/sql-server.ts';
import { median } from './measure/statistics.ts';
import { buildBase } from './pairs/build-base.ts';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { before: { type: 'string' }, rounds: { type: 'string', default: '15' } },
});
const WANTED = new RegExp(positionals[0] ?? '', 'i');
const ROUNDS = Number(options.rounds);
/** How long a contestant runs in each round, in milliseconds. */
const TURN = 200;
const MOST = 64;
const CALLERS = [1, 4, MOST];

const library = await load(new URL('../../dist/', import.meta.url));
const isBuilt = options.before !== undefined && existsSync(options.before);
const built = options.before !== undefined && !isBuilt ? buildBase(options.before) : undefined;
const folder = built?.folder ?? (isBuilt ? resolve(options.before) : undefined);
const before = folder && (await load(pathToFileURL(`${folder}/`)));

/** The library in a folder with a build. */
async function load(folder) {
  return {
    ...(await import(new URL('esm/core.js', folder).href)),
    ...(await import(new URL('esm/sql.js', folder).href)),
  };
}

const rows = { name: 'FOR UPDATE by hand', open: (url) => postgresRows(url) };
const advisory = { name: 'pg_advisory_lock by hand', open: (url) => postgresAdvisory(url) };
const getLock = { name: 'GET_LOCK by hand', open: (url) => mariadbGetLock(url) };
const mariaRows = { name: 'FOR UPDATE by hand', open: (url) => mariadbRows(url) };
const flushed = { name: 'FOR UPDATE by hand, a token on the disk', open: (url) => postgresRows(url, 'on') };
const withToken = ({ name }, open) => ({ name: `${name}, with a token`, open });

/**
 * The contestants on each server. The first of each group is the baseline for the others. Each caller has its own key.
 */
const SERVERS = [
  {
    title: 'PostgreSQL',
    start: () => startSqlServer('PostgreSQL', 'durable'),
    callers: CALLERS,
    groups: [
      [rows, withToken(rows, (url) => postgresRows(url, 'off')), ours('rowLocks'), ...earlier()],
      [advisory, withToken(advisory, (url) => postgresAdvisory(url, true)), ours('advisoryLocks')],
    ],
  },
  {
    title: 'PostgreSQL whose disk takes 2 ms more (commit_delay)',
    start: () => startSqlServer('PostgreSQL', 'durable', ['commit_delay=2000', 'commit_siblings=0']),
    callers: [MOST],
    groups: [[flushed, ours('rowLocks'), ours('advisoryLocks'), ...earlier()]],
  },
  {
    title: 'MariaDB',
    start: () => startSqlServer('MariaDB', 'durable'),
    callers: CALLERS,
    groups: [
      [mariaRows, withToken(mariaRows, (url) => mariadbRows(url, true)), ours('rowLocks'), ...earlier()],
      [getLock, withToken(getLock, (url) => mariadbGetLock(url, true)), ours('advisoryLocks')],
    ],
  },
].filter(({ title }) => WANTED.test(title));

function ours(kind) {
  return { name: kind, open: (url) => locksAt(url, library, kind) };
}

function earlier() {
  return before ? [{ name: 'rowLocks before', open: (url) => locksAt(url, before, 'rowLocks') }] : [];
}

function locksAt(url, { createLockService, ...from }, kind) {
  const backend = from[kind]({ url, createTable: true, connections: MOST });
  const locks = createLockService({ backend, logger: { warn() {}, error() {} } });
  return { withLock: (key, body) => locks.withLock(key, body), close: () => locks.close() };
}

/**
 * The usual statements: three, and one more for the token.
 *
 * @param tokens each lock writes one, in autocommit, on one connection for all: with `synchronous_commit` on or off. By
 * default none.
 */
async function postgresRows(url, tokens) {
  const pool = new pg.Pool({ connectionString: url, max: MOST });
  const control = await postgresTables(url);
  if (tokens !== undefined) await control.query(`SET synchronous_commit = ${tokens}`);
  let last = Promise.resolve();
  const token = (key) => {
    last = last.then(() => control.query(NEXT_TOKEN, [key]));
    return last;
  };
  return {
    async withLock(key, body) {
      const session = await pool.connect();
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

/** @param hasTokens each lock writes one, on its own session, without waiting for the disk */
async function postgresAdvisory(url, hasTokens = false) {
  const pool = new pg.Pool({ connectionString: url, max: MOST, options: '-c synchronous_commit=off' });
  const control = await postgresTables(url);
  const withLock = async (key, body) => {
    const session = await pool.connect();
    await session.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [key]);
    if (hasTokens) await session.query(NEXT_TOKEN, [key]);
    await body();
    await session.query('SELECT pg_advisory_unlock(hashtextextended($1, 0))', [key]);
    session.release();
  };
  return { withLock, close: () => Promise.all([pool.end(), control.end()]) };
}

const NEXT_TOKEN = `UPDATE by_hand_token SET token = greatest(token + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
  WHERE name = $1 RETURNING token`;

/** The rows that the handwritten locks need. */
async function postgresTables(url) {
  const control = new pg.Client(url);
  await control.connect();
  await control.query('CREATE TABLE IF NOT EXISTS by_hand (name text PRIMARY KEY)');
  await control.query('CREATE TABLE IF NOT EXISTS by_hand_token (name text PRIMARY KEY, token bigint NOT NULL)');
  for (let n = 0; n < MOST; n++) {
    await control.query('INSERT INTO by_hand VALUES ($1) ON CONFLICT DO NOTHING', [keyOf(n)]);
    await control.query('INSERT INTO by_hand_token VALUES ($1, 0) ON CONFLICT DO NOTHING', [keyOf(n)]);
  }
  return control;
}

/** @param hasTokens each lock writes one, in autocommit, on one connection for all */
async function mariadbRows(url, hasTokens = false) {
  const pool = mysql.createPool({ uri: url, connectionLimit: MOST });
  const control = await mariadbTables(url);
  const withLock = async (key, body) => {
    const session = await pool.getConnection();
    await session.query('START TRANSACTION');
    await session.query('SELECT 1 FROM by_hand WHERE name = ? FOR UPDATE', [key]);
    if (hasTokens) await control.query(NEXT_TOKEN_OF_MARIADB, [key]);
    await body();
    await session.query('COMMIT');
    session.release();
  };
  return { withLock, close: () => Promise.all([pool.end(), control.end()]) };
}

/** @param hasTokens each lock writes one, on its own session */
async function mariadbGetLock(url, hasTokens = false) {
  const pool = mysql.createPool({ uri: url, connectionLimit: MOST });
  const control = await mariadbTables(url);
  const withLock = async (key, body) => {
    const session = await pool.getConnection();
    await session.query('SELECT GET_LOCK(?, 60)', [key]);
    if (hasTokens) await session.query(NEXT_TOKEN_OF_MARIADB, [key]);
    await body();
    await session.query('SELECT RELEASE_LOCK(?)', [key]);
    session.release();
  };
  return { withLock, close: () => Promise.all([pool.end(), control.end()]) };
}

const NEXT_TOKEN_OF_MARIADB = 'UPDATE by_hand_token SET token = LAST_INSERT_ID(token + 1) WHERE name = ?';

async function mariadbTables(url) {
  const control = await mysql.createConnection(url);
  await control.query('CREATE TABLE IF NOT EXISTS by_hand (name varbinary(255) PRIMARY KEY)');
  await control.query('CREATE TABLE IF NOT EXISTS by_hand_token (name varbinary(255) PRIMARY KEY, token bigint)');
  for (let n = 0; n < MOST; n++) {
    await control.query('INSERT IGNORE INTO by_hand VALUES (?)', [keyOf(n)]);
    await control.query('INSERT IGNORE INTO by_hand_token VALUES (?, 0)', [keyOf(n)]);
  }
  return control;
}

function keyOf(n) {
  return `key:${n}`;
}

async function turn({ withLock }, callers) {
  const held = new Set();
  let bodies = 0;
  const call = (key) =>
    withLock(key, async () => {
      if (held.has(key)) throw new Error(`${key} is held twice`);
      held.add(key);
      await undefined;
      held.delete(key);
      bodies++;
    });
  const started = performance.now();
  const run = async (n) => {
    while (performance.now() < started + TURN) await call(keyOf(n));
  };
  await Promise.all(Array.from({ length: callers }, (_, n) => run(n)));
  return { bodies, rate: (bodies * 1_000) / (performance.now() - started) };
}

/** How many transaction numbers PostgreSQL has given out. */
function transactionsOf(control) {
  return async () => Number((await control.query('SELECT txid_snapshot_xmax(txid_current_snapshot()) AS n')).rows[0].n);
}

async function compare({ title, start, callers: crowds, groups }) {
  const server = await start();
  const control = server.kind === 'PostgreSQL' ? await postgresTables(server.url) : undefined;
  const transactions = control ? transactionsOf(control) : async () => Number.NaN;
  const contestants = [];
  for (const group of groups)
    for (const { name, open } of group)
      contestants.push({ name, measure: group[0].name, locks: await open(server.url), rates: [], spent: [] });
  for (const callers of crowds) {
    for (const contestant of contestants) Object.assign(contestant, { rates: [], spent: [] });
    // The first round warms up. Each round begins with another contestant.
    for (let round = 0; round <= ROUNDS; round++)
      for (let n = 0; n < contestants.length; n++) {
        const contestant = contestants[(n + round) % contestants.length];
        const first = await transactions();
        const { bodies, rate } = await turn(contestant.locks, callers);
        if (round === 0) continue;
        contestant.rates.push(rate);
        contestant.spent.push((100 * ((await transactions()) - first)) / bodies);
      }
    print(title, callers, contestants);
  }
  await Promise.all(contestants.map(({ locks }) => locks.close()));
  await control?.end();
  await server.stop();
}

function print(title, callers, contestants) {
  const crowd = callers === 1 ? 'one caller' : `${callers} callers, a key each`;
  console.log(`\n### ${title}: ${crowd}\n`);
  const old = contestants.find(({ name }) => name === 'rowLocks before');
  const hasNumbers = contestants.some(({ spent }) => !Number.isNaN(spent[0]));
  const columns = [
    ['per second', ({ rates }) => Math.round(median(rates)).toLocaleString('en')],
    ['relative to', ({ name, measure }) => (name === measure ? '' : measure)],
    ['', ({ name, rates, measure }) => (name === measure ? '' : ratio(rates, ratesOf(measure)))],
    ...(old ? [['to rowLocks before', (each) => (each === old ? '' : ratio(each.rates, old.rates))]] : []),
    ...(hasNumbers ? [['xids per 100', ({ spent }) => median(spent).toFixed(0)]] : []),
  ];
  const ratesOf = (wanted) => contestants.find(({ name }) => name === wanted).rates;
  console.log(`| | ${columns.map(([head]) => head).join(' | ')} |`);
  console.log(`| --- |${columns.map(([head]) => (head === 'relative to' ? ' --- |' : ' ---: |')).join('')}`);
  for (const contestant of contestants)
    console.log(`| ${contestant.name} | ${columns.map(([, cell]) => cell(contestant)).join(' | ')} |`);
}

/** The median of the ratios of the rounds, with a range that contains half of them. */
function ratio(rates, others) {
  const ratios = rates.map((rate, round) => rate / others[round]).sort((a, b) => a - b);
  const at = (part) => ratios[Math.floor(part * (ratios.length - 1))].toFixed(2);
  return `${at(0.5)} (${at(0.25)}–${at(0.75)})`;
}

// The servers' handles do not keep this process alive.
setInterval(() => {}, 1_000);
console.log(`Locked sections per second: medians of ${ROUNDS} turns of ${TURN} ms each`);
for (const server of SERVERS) await compare(server);
built?.remove();
process.exit(0);
