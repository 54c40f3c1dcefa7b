import type { Redis } from 'ioredis';
import { type Finding, ok, wrong } from './check.js';

const SLOTS = 16_384;

/** Whether every slot of the cluster is served, as one of its masters sees it. */
export async function checkCluster(master: Redis): Promise<Finding> {
  const info = await master.cluster('INFO');
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
  const state = field('cluster_state');
  const assigned = Number(field('cluster_slots_assigned') ?? 0);
  const failing = Number(field('cluster_slots_fail') ?? 0) + Number(field('cluster_slots_pfail') ?? 0);
  if (assigned < SLOTS)
    return wrong(
      `${SLOTS - assigned} of ${SLOTS} slots belong to no node: their locks are refused`,
      'redis-cli --cluster fix',
    );
  if (failing > 0)
    return wrong(`${failing} slots have a master that fails`, 'start that node, or fail over to a replica');
  if (state !== 'ok') return wrong(`the cluster is in the state '${state}'`, 'redis-cli --cluster check');
  return ok(`all ${SLOTS} slots are served by ${field('cluster_size')} masters`);
}
