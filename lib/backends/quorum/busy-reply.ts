import type { Busy } from '../lock-backend.js';
import { fromLimit, toLimit } from './majority-view.js';
import type { Refused } from './quorum-attempt.js';
import type { QuorumNodes } from './quorum-nodes.js';

/** How long one waits before another try when nobody has a majority, in ms. */
const SHORTEST_PAUSE = 5;
const LONGEST_PAUSE = 50;

/**
 * What to tell a caller who got no majority. Where an owner has one, it is worth looking again when that one's lease ends, or at
 * its message; where nobody has, in a moment, but not in step with the others who try.
 *
 * @param keys the locks of the attempt
 * @param took milliseconds that it took
 */
export async function busyReply(
  nodes: QuorumNodes,
  keys: readonly string[],
  refused: Refused,
  took: number,
): Promise<Busy & { readonly index: number }> {
  const { index, refusals, holder } = refused;
  const seen =
    holder === undefined
      ? await seenHolder(nodes, keys[index])
      : { holder, remaining: untilFree(refused, nodes.majority) };
  const pause = SHORTEST_PAUSE + (LONGEST_PAUSE - SHORTEST_PAUSE + took) * nodes.runtime.random();
  return { acquired: false, index, ...(seen ?? { holder: refusals[0].holder, remaining: Math.ceil(pause) }) };
}

/** When leases have ended on so many nodes that they are a majority together with the free ones. */
function untilFree({ refusals, free }: Refused, majority: number): number {
  const ends = refusals.map(({ remaining }) => fromLimit(remaining)).sort((one, other) => one - other);
  return toLimit(ends[Math.max(1, majority - free) - 1]);
}

/** By a closer look: there may be many readers, and each node has named one of them. */
async function seenHolder(nodes: QuorumNodes, key: string): Promise<Pick<Busy, 'holder' | 'remaining'> | undefined> {
  const state = await nodes.inspect(key).catch(() => undefined);
  if (state === undefined || state.owners.length === 0) return undefined;
  const remaining = toLimit(Math.max(...state.owners.map((owner) => fromLimit(owner.remaining))));
  return { holder: state.owners[0].owner, remaining };
}
