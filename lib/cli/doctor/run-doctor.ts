import { randomUUID } from 'node:crypto';
import { tagOf } from '../../backends/redis/diagnostics.js';
import { EXIT } from '../command-error.js';
import type { Output } from '../output.js';
import { type OpenRedis, openRedis } from '../redis/open-redis.js';
import type { RedisPlace } from '../redis/redis-place.js';
import type { Server } from '../redis/server.js';
import { printable } from '../text/printable.js';
import { type Check, type Finding, onEachMaster } from './check.js';
import { checkCluster } from './cluster-check.js';
import { checkPubSub } from './pubsub-check.js';
import { checkRights, type RightsSubject } from './rights-check.js';
import { checkClock, checkMemory, checkOtherKeys, checkRole, checkScripts, checkVersion } from './server-checks.js';

/** `doctor`: whether a Redis and its user are set up for locks. */
export async function runDoctor(place: RedisPlace, keyPrefix: string, output: Output): Promise<number> {
  const redis = await openRedis(place);
  try {
    const user = place.url.startsWith('/') ? 'default' : decodeURIComponent(new URL(place.url).username) || 'default';
    const checks = await examine(redis, { keyPrefix, isCluster: place.isCluster, user });
    const isFit = checks.every(({ status }) => status !== 'wrong');
    const lines = [`${printable(place.description)}, user '${printable(user)}'`, ...checks.flatMap(toLines)];
    output.result({ server: place.description, user, fit: isFit, checks }, lines);
    return isFit ? EXIT.ok : EXIT.unfit;
  } finally {
    await redis.close();
  }
}

async function examine(redis: OpenRedis, subject: RightsSubject): Promise<Check[]> {
  const { keyPrefix, isCluster } = subject;
  // A node would answer for a key of another one by MOVED, before it says what is wrong with itself.
  const unusedKey = ({ slot }: Server) =>
    slot === undefined ? `${keyPrefix}{doctor-${randomUUID()}}` : `${keyPrefix}doctor-${randomUUID()}{${tagOf(slot)}}`;
  const checks: [string, (master: Server) => Promise<Finding>][] = [
    ['version', checkVersion],
    ['role', (master) => checkRole(master, unusedKey(master))],
    ['memory', (master) => checkMemory(master, unusedKey(master))],
    ['rights', (master) => checkRights(master, subject)],
    ['pub/sub', (master) => checkPubSub(master)],
    ['scripts', (master) => checkScripts(master, unusedKey(master))],
    ['clock', checkClock],
  ];
  checks.push(['keys', (master) => checkOtherKeys(master, keyPrefix, redis.database)]);
  if (isCluster) checks.push(['cluster', checkCluster]);
  const found: Check[] = [];
  for (const [check, examination] of checks) found.push(...(await onEachMaster(check, redis.masters(), examination)));
  // Without other keys, there is nothing to say.
  return found.filter(({ check, status }) => check !== 'keys' || status !== 'ok');
}

const MARKS = { ok: 'ok   ', note: 'note ', wrong: 'WRONG' };

function toLines({ check, node, status, message, remedy }: Check): string[] {
  const where = node === undefined ? '' : `${node}: `;
  const lines = [`  ${MARKS[status]}  ${check.padEnd(8)}  ${printable(where + message)}`];
  return remedy === undefined ? lines : [...lines, `${' '.repeat(19)}→ ${printable(remedy)}`];
}
