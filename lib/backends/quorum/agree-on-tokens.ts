import type { HeldType, OwnerRef } from '../lock-requests.js';
import { collectReplies, noMajorityError } from './collect-replies.js';
import type { QuorumNodes } from './quorum-nodes.js';

interface Raise {
  readonly key: string;
  readonly type: HeldType;
  readonly token: number;
}

/**
 * Raises the nodes that granted the locks to the highest tokens among them.
 *
 * @param grants by the index of the node
 * @throws BackendError when the counters could not be raised on a majority
 */
export async function agreeOnTokens(
  nodes: QuorumNodes,
  grants: ReadonlyMap<number, GrantedTokens>,
  owners: readonly OwnerRef[],
  timeout: number,
): Promise<GrantedTokens> {
  const highest = (tokenOf: (grant: GrantedTokens, lock: number) => number) =>
    owners.map((_, lock) => Math.max(...[...grants.values()].map((grant) => tokenOf(grant, lock))));
  const tokens = highest((grant, lock) => grant.tokens[lock]);
  const lastTokens = highest((grant, lock) => grant.tokens[lock] + grant.reserved);
  const { all, majority } = nodes;
  const calls = [...grants].map(([index, grant]) => {
    const raises = neededRaises(owners, grant, lastTokens);
    return all[index].ask<unknown>(timeout, (backend) =>
      Promise.all(raises.map(({ key, type, token }) => backend.raiseToken(key, type, token))),
    );
  });
  const raised = await collectReplies(calls, ({ replies }) => replies.size >= majority);
  if (raised.replies.size < majority) throw noMajorityError(raised, all.length);
  return { granted: true, tokens, reserved: lastTokens[0] - tokens[0] };
}

/**
 * Which token counters to raise on a node so that its next tokens are above `lastTokens`. Locks that are not fenced
 * share one clock.
 */
function neededRaises(owners: readonly OwnerRef[], grant: GrantedTokens, lastTokens: readonly number[]): Raise[] {
  const raises: Raise[] = [];
  for (const [lock, { key, type }] of owners.entries()) {
    const token = lastTokens[lock];
    if (grant.tokens[lock] + grant.reserved >= token) continue;
    const shared = type === 'fenced' ? -1 : raises.findIndex((other) => other.type !== 'fenced');
    if (shared < 0) raises.push({ key, type, token });
    else if (raises[shared].token < token) raises[shared] = { key, type, token };
  }
  return raises;
}

/** What a node, or a majority of nodes, grants. */
export interface GrantedTokens {
  readonly granted: true;
  /** One for each lock. */
  readonly tokens: readonly number[];
  /** How many more tokens are reserved after each of them. */
  readonly reserved: number;
  /** The node may execute another copy of the request until this time on its clock. */
  readonly validUntil?: number | undefined;
}
