import { sentinelMasters } from '../../backends/redis/diagnostics.js';
import { CommandError } from '../command-error.js';
import type { CommandLine } from '../command-line.js';
import type { Output } from '../output.js';
import type { RedisPlace } from './redis-place.js';

/** The master of a replica. */
export interface ReplicaOf {
  /** `host:port` */
  readonly master: string;
  /** Whether the replica is connected to its master. */
  readonly isLinked: boolean;
}

/** @throws CommandError if the server stores no locks, or only some of them */
export function refuseOtherKinds(info: string, { description, isCluster }: RedisPlace): void {
  const masters = sentinelMasters(info);
  if (masters !== undefined) {
    throw new CommandError(
      'usage',
      `${description} is a Sentinel, which has no locks. Give the URL of the master that it watches: ${masters}`,
    );
  }
  const enabled = /^cluster_enabled:(\d)/m.exec(info)?.[1];
  if (enabled === undefined || isCluster === (enabled === '1')) return;
  throw new CommandError(
    'usage',
    isCluster
      ? `${description} is not a node of a cluster. Leave out --cluster`
      : `${description} is a node of a cluster, and stores only some of the locks. Add --cluster`,
  );
}

/** @param info the reply to INFO */
export function replicaOf(info: string): ReplicaOf | undefined {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
  if (field('role') !== 'slave') return undefined;
  return { master: `${field('master_host')}:${field('master_port')}`, isLinked: field('master_link_status') === 'up' };
}

/**
 * Notes that a replica may have old data.
 *
 * @throws CommandError for a release on a replica, because its master would still have the lock
 */
export function noteReplica(
  replica: ReplicaOf | undefined,
  { verb }: CommandLine,
  { description }: RedisPlace,
  output: Output,
): void {
  if (replica === undefined) return;
  const { master, isLinked } = replica;
  if (verb === 'release')
    throw new CommandError(
      'usage',
      `${description} is a replica. Nothing was released. Run the command on its master, ${master}`,
    );
  const age = isLinked ? 'may lag behind it' : 'is not connected to it, so this data may be out of date';
  output.note(`${description} is a replica of ${master}, and ${age}`);
}
