import type { Redis } from 'ioredis';
import { type Finding, note, ok } from './check.js';

/** Differences below this do not matter, in milliseconds. */
const TOLERANCE = 1_000;

/** Compares the clock of a server with that of this host. */
export async function checkClock(master: Redis): Promise<Finding> {
  const before = Date.now();
  const [seconds, microseconds] = (await master.time()).map(Number);
  const after = Date.now();
  const time = seconds * 1_000 + microseconds / 1_000;
  // It was read at some moment between the two.
  const difference = time < before ? time - before : Math.max(0, time - after);
  if (Math.abs(difference) <= TOLERANCE) return ok('the clocks of Redis and of this host agree');
  const side = difference > 0 ? 'ahead of' : 'behind';
  return note(
    `the clock of Redis is ${(Math.abs(difference) / 1_000).toFixed(1)} s ${side} the clock of this host`,
    'synchronize the clocks (NTP). Leases do not depend on it, but cron jobs begin apart: a holdAtLeast must be longer',
  );
}
