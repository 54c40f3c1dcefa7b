import { createHash } from 'node:crypto';
import { globPattern } from '../../directory/glob-pattern.js';
import type { KeyPage } from '../../lock-backend.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { ServerError } from '../connection/redis-errors.js';
import type { Link } from '../links/link.js';
import { ALL_NOTES, isBesideLocks, notedKey } from '../lock-keys.js';
import { arrayOf } from '../reply-shape.js';
import type { NodeCommands } from './node-commands.js';

/**
 * A page ends after this many SCANs, even if few locks were found, because the server may have millions of other keys.
 */
const MOST_SCANS = 100;

/** Notes are rare among the scanned keys, so each SCAN covers more keys. */
const FEWEST_FOR_NOTES = 1_000;

/**
 * What a scan looks for, in this order: locks, locks that n may hold, and notes about semaphores and latches with results
 * of single flights. Each is named by what stands before its cursor.
 */
const PASSES = ['', 'p', 'n'] as const;
type Pass = (typeof PASSES)[number];

/** Where a scan continues: `<pass><cursor>`, or `<version>@<host>:<port>/<pass><cursor>` on a cluster. */
const CURSOR = /^(?:([0-9a-f]{8})@(.+)\/)?([pn]?)(\d{1,20})$/;

/**
 * Reads the next page of keys. It scans one master after the other, and each of them once for each of the {@link PASSES}. It does not search for semaphores and
 * latches themselves, because there may be millions of other strings under the prefix.
 */
export async function scanLocks(
  prefix: string,
  match: string,
  cursor: string | undefined,
  count: number,
  { topology, isCluster, description }: RedisConnection,
  commands: NodeCommands,
): Promise<KeyPage | undefined> {
  const masters = topology.masters();
  // A list without the locks of one master would look complete.
  const [unreachable] = topology.unreachableMasters();
  if (unreachable !== undefined) {
    topology.refresh();
    throw new ServerError(description, `${unreachable} cannot be reached`, 'unavailable', 'refused');
  }
  let at = findPoint(cursor, masters, isCluster);
  if (at === undefined) return undefined;
  const keys = new Set<string>();
  const synchronizers = new Set<string>();
  const results = new Set<string>();
  const pattern = escapeGlob(prefix) + match;
  const isWanted = globPattern(pattern);
  const size = () => keys.size + synchronizers.size + results.size;
  for (let scans = 0; at.node < masters.length && scans < MOST_SCANS && size() < count; scans++) {
    const master: Link = masters[at.node];
    const { pass } = at;
    const [wanted, most] = pass === 'n' ? [ALL_NOTES, Math.max(count, FEWEST_FOR_NOTES)] : [pattern, count];
    const type = pass === 'p' ? 'zset' : 'hash';
    const args = [at.position, 'MATCH', wanted, 'COUNT', String(most), 'TYPE', type];
    const [next, found] = arrayOf(await commands.send(master, 'scan', args), description);
    for (const name of arrayOf(found, description).map(String)) {
      if (pass !== 'n') {
        if (!isBesideLocks(name)) keys.add(name);
        continue;
      }
      const noted = notedKey(name);
      if (noted !== undefined && isWanted.test(noted.key)) (noted.isResult ? results : synchronizers).add(noted.key);
    }
    at = following(at, String(next));
  }
  return {
    keys: [...keys],
    synchronizers: [...synchronizers],
    results: [...results],
    cursor: nameOf(at, masters, isCluster),
  };
}

function following({ node, pass }: ScanPoint, position: string): ScanPoint {
  if (position !== '0') return { node, pass, position };
  const next = PASSES[PASSES.indexOf(pass) + 1];
  return next === undefined ? { node: node + 1, pass: '', position } : { node, pass: next, position };
}

interface ScanPoint {
  readonly node: number;
  readonly pass: Pass;
  readonly position: string;
}

function findPoint(cursor: string | undefined, masters: readonly Link[], isCluster: boolean): ScanPoint | undefined {
  if (cursor === undefined) return { node: 0, pass: '', position: '0' };
  const [, version, address, pass, position] = CURSOR.exec(cursor) ?? [];
  if (position === undefined || (address !== undefined) !== isCluster) return undefined;
  if (isCluster && version !== versionOf(masters)) return undefined;
  const node = isCluster ? masters.findIndex((master) => master.address === address) : 0;
  return node < 0 ? undefined : { node, pass: pass as Pass, position };
}

function nameOf({ node, pass, position }: ScanPoint, masters: readonly Link[], isCluster: boolean): string | undefined {
  if (node >= masters.length) return undefined;
  const point = pass + position;
  return isCluster ? `${versionOf(masters)}@${masters[node].address}/${point}` : point;
}

/**
 * Which masters a cluster has. Masters are scanned in the order of their addresses. After a failover, a master that was
 * not scanned yet may stand among those that were, and its locks would be left out silently.
 */
function versionOf(masters: readonly Link[]): string {
  const addresses = masters.map(({ address }) => address).join(' ');
  return createHash('sha256').update(addresses).digest('hex').slice(0, 8);
}

/** A pattern for SCAN that matches only this text. */
export function escapeGlob(text: string): string {
  return text.replace(/[\\*?[\]^]/g, '\\$&');
}
