import type { Redis } from 'ioredis';
import { BackendError, type KeyPage } from '../../lock-backend.js';
import { addressOf } from '../client/cluster-nodes.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { listOf } from '../reply-shape.js';
import type { NodeCommands } from './node-commands.js';

/** A page ends after so many SCANs, also where few locks were found: the server may have millions of other keys. */
const MOST_SCANS = 100;

/** Where a scan goes on: `<cursor>`, on a cluster `<host>:<port>/<cursor>`. */
const CURSOR = /^(?:(.+)\/)?(\d{1,20})$/;

/** The next page of keys of locks, one master after the other. */
export async function scanLocks(
  pattern: string,
  cursor: string | undefined,
  count: number,
  { nodes, isCluster, description }: RedisConnection,
  commands: NodeCommands,
): Promise<KeyPage | undefined> {
  const masters = nodes.masters();
  // A list without its locks would look like good news.
  const [unreachable] = nodes.unreachableMasters();
  if (unreachable !== undefined) {
    nodes.refresh();
    throw new BackendError(`${description}: ${unreachable} cannot be reached`, 'unavailable', 'refused');
  }
  let at = findPlace(cursor, masters, isCluster);
  if (at === undefined) return undefined;
  const keys = new Set<string>();
  for (let scans = 0; at.node < masters.length && scans < MOST_SCANS && keys.size < count; scans++) {
    const master: Redis = masters[at.node];
    const args = [at.position, 'MATCH', pattern, 'COUNT', String(count), 'TYPE', 'hash'];
    const [next, found] = listOf(await commands.send(master, 'scan', args), description);
    for (const key of listOf(found, description)) keys.add(String(key));
    at = String(next) === '0' ? { node: at.node + 1, position: '0' } : { node: at.node, position: String(next) };
  }
  return { keys: [...keys], cursor: nameOf(at, masters, isCluster) };
}

interface Place {
  readonly node: number;
  readonly position: string;
}

function findPlace(cursor: string | undefined, masters: readonly Redis[], isCluster: boolean): Place | undefined {
  if (cursor === undefined) return { node: 0, position: '0' };
  const [, address, position] = CURSOR.exec(cursor) ?? [];
  if (position === undefined || (address !== undefined) !== isCluster) return undefined;
  const node = isCluster ? masters.findIndex((master) => addressOf(master) === address) : 0;
  return node < 0 ? undefined : { node, position };
}

function nameOf({ node, position }: Place, masters: readonly Redis[], isCluster: boolean): string | undefined {
  if (node >= masters.length) return undefined;
  return isCluster ? `${addressOf(masters[node])}/${position}` : position;
}

/** A pattern of SCAN that stands for this text alone. */
export function escapeGlob(text: string): string {
  return text.replace(/[\\*?[\]^]/g, '\\$&');
}
