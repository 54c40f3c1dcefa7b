import type { Busy } from '../lock-requests.js';
import { fromLimit, toLimit } from './majority-view.js';
import type { MajorityBusy } from './quorum-attempt.js';
import type { QuorumNodes } from './quorum-nodes.js';

/** How long to wait before another attempt when no owner has a majority, in ms. */
const SHORTEST_PAUSE = 5;
const LONGEST_PAUSE = 50;

/**
 * The reply to a caller that got no majority. If another owner has a majority, the next attempt makes sense when that
 * owner's lease ends, or at a message. If no owner has a majority, it makes sense after a short random pause, so that
 * competing callers do not retry at the same moment.
 *
 * @param keys the locks of the attempt
 * @param took how long the attempt took, in milliseconds
 */
export async function busyReply(
  nodes: QuorumNodes,
  keys: readonly string[],
  attempt: MajorityBusy,
  took: number,
): Promise<Busy & { readonly index: number }> {
  const { index, busyNodes, holder, spent } = attempt;
  const seen =
    holder === undefined
      ? await inspectHolder(nodes, keys[index])
      : { holder, remaining: untilFree(attempt, nodes.majority) };
  const pause = SHORTEST_PAUSE + (LONGEST_PAUSE - SHORTEST_PAUSE + took) * nodes.runtime.random();
  const heldAs = busyNodes.find((busy) => busy.heldAs !== undefined)?.heldAs;
  return {
    acquired: false,
    index,
    spent,
    ...(heldAs && { heldAs }),
    ...(seen ?? { holder: busyNodes[0].holder, remaining: Math.ceil(pause) }),
  };
}

/** Milliseconds until leases have ended on enough nodes to make a majority together with the free ones. */
function untilFree({ busyNodes, free }: MajorityBusy, majority: number): number {
  const ends = busyNodes.map(({ remaining }) => fromLimit(remaining)).sort((one, other) => one - other);
  return toLimit(ends[Math.max(1, majority - free) - 1]);
}

/** Inspects the lock, because it may have many readers, and each node has named only one. */
async function inspectHolder(nodes: QuorumNodes, key: string): Promise<Pick<Busy, 'holder' | 'remaining'> | undefined> {
  const state = await nodes.inspect(key).catch(() => undefined);
  if (state === undefined || state.owners.length === 0) return undefined;
  const remaining = toLimit(Math.max(...state.owners.map((owner) => fromLimit(owner.remaining))));
  return { holder: state.owners[0].owner, remaining };
}
