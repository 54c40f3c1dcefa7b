// A process that repeatedly adds one to a row of PostgreSQL under a lock in Redis, until its input ends. Its argument
// is an IncrementerSpec as JSON. It prints a line before each update, and after the answer to it.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';

export interface IncrementerSpec {
  readonly process: string;
  readonly options: RedisLockOptions;
  readonly database: string;
  /** Whether the update checks the fencing token. */
  readonly guarded: boolean;
}

/**
 * `read`: it computes the new value. `sent`: the update is under way. `refused`: a later holder has written its token.
 */
export type IncrementerLine = { readonly n: number; readonly step: 'read' | 'sent' | 'confirmed' | 'refused' };

const { process: title, options, database, guarded } = JSON.parse(process.argv[2]) as IncrementerSpec;
const locks = createLockService({ ...options, logger: { warn: () => {}, error: () => {} } });
const db = new pg.Client(database);
await db.connect();
let running = true;
process.stdin.resume().once('end', () => {
  running = false;
});

for (let n = 1; running; ) {
  let lease: Lease;
  try {
    lease = await locks.acquire('register', { waitTime: '1s' });
  } catch {
    await sleep(20);
    continue;
  }
  if (await increment(n, lease.fencingToken)) n++;
  await lease.release().catch(() => {});
}
await locks.close();
await db.end();
process.exit();

/**
 * Reads the value, computes for a moment, and writes it, because an increment inside the database would need no lock.
 */
async function increment(n: number, token: number): Promise<boolean> {
  const read = guarded
    ? 'update register set fence = $1 where fence <= $1 returning value'
    : 'select value from register where $1::bigint > 0';
  const { rows } = await db.query<{ value: number }>(read, [token]);
  if (rows.length === 0) return say(n, 'refused');
  say(n, 'read');
  await sleep(Math.random() * 4);
  say(n, 'sent');
  const { rowCount } = await db.query(
    `with written as (update register set value = $1, fence = $2 where ${guarded ? 'fence <= $2' : '$2::bigint > 0'} returning 1)
     insert into increments select $3, $4 from written`,
    [rows[0].value + 1, token, title, n],
  );
  return say(n, rowCount === 1 ? 'confirmed' : 'refused');
}

/** Pipes are written synchronously, so nothing that a killed process has printed is lost. */
function say(n: number, step: IncrementerLine['step']): boolean {
  process.stdout.write(`${JSON.stringify({ n, step })}\n`);
  return step === 'confirmed';
}
