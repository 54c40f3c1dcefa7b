import type { Server } from '../redis/server.js';
import { type Finding, ok, wrong } from './check.js';

const SLOTS = 16_384;

interface SlotRange {
  readonly from: number;
  readonly to: number;
}

/** Whether every slot of the cluster is served, as one of its nodes sees it. */
export async function checkCluster(node: Server): Promise<Finding> {
  const info = await node.text('cluster', 'info');
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
  const state = field('cluster_state');
  const assigned = Number(field('cluster_slots_assigned') ?? 0);
  if (assigned < SLOTS) {
    const ranges = unassigned((await node.ask('cluster', 'slots')) as [number, number][]);
    return wrong(
      `${SLOTS - assigned} of ${SLOTS} slots belong to no node: ${ranges.map(rangeText).join(', ')}`,
      'their locks are refused: redis-cli --cluster fix',
    );
  }
  const failing = Number(field('cluster_slots_fail') ?? 0) + Number(field('cluster_slots_pfail') ?? 0);
  if (failing > 0) {
    // Locks do not need the right to this command.
    const nodes = await node.text('cluster', 'nodes').catch(() => '');
    const places = failingMasters(nodes).join(', ') || 'CLUSTER NODES shows which';
    return wrong(
      `${failing} of ${SLOTS} slots have no master that answers: ${places}`,
      'start that node, or fail over to a replica of it: CLUSTER FAILOVER TAKEOVER, sent to the replica',
    );
  }
  if (state !== 'ok') return wrong(`the cluster is in the state '${state}'`, 'redis-cli --cluster check');
  return ok(`all ${SLOTS} slots are served by ${field('cluster_size')} masters`);
}

/** @param slots the reply of CLUSTER SLOTS */
function unassigned(slots: readonly (readonly [number, number])[]): SlotRange[] {
  const gaps: SlotRange[] = [];
  let next = 0;
  for (const [from, to] of [...slots, [SLOTS, SLOTS] as const].sort(([one], [other]) => one - other)) {
    if (from > next) gaps.push({ from: next, to: from - 1 });
    next = to + 1;
  }
  return gaps;
}

/** `0-5461 (10.0.0.7:6379)` of each master with slots that counts as down. @param nodes the reply of CLUSTER NODES */
function failingMasters(nodes: string): string[] {
  return nodes.split('\n').flatMap((line) => {
    const [, address = '', flags = '', , , , , , ...slots] = line.split(' ');
    if (!flags.includes('master') || !flags.includes('fail') || slots.length === 0) return [];
    return `${slots.join(', ')} (${address.split('@')[0]})`;
  });
}

function rangeText({ from, to }: SlotRange): string {
  return from === to ? String(from) : `${from}-${to}`;
}
