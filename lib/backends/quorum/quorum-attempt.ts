import type { BackendError } from '../backend-error.js';
import type { Busy, OwnerRef } from '../lock-requests.js';
import { agreeOnTokens, type GrantedTokens } from './agree-on-tokens.js';
import { collectReplies, countReplies, majorityAgrees, type NodeReplies, noMajorityError } from './collect-replies.js';
import { mostCommon } from './majority-view.js';
import type { QuorumMember } from './quorum-member.js';
import type { NodeCall, PossibleGrant } from './quorum-node.js';
import type { QuorumNodes } from './quorum-nodes.js';

/** What one node answers to an attempt. */
export type NodeReply = GrantedTokens | NodeBusy;

export interface NodeBusy {
  readonly granted: false;
  /** The lock that is busy. */
  readonly index: number;
  readonly remaining: number;
  readonly holder: string | undefined;
  readonly heldAs?: Busy['heldAs'];
  /** The node may still execute another copy of the request until this time on its clock. */
  readonly validUntil?: number | undefined;
}

export interface QuorumRequest {
  /** The new owners, one for each lock. */
  readonly owners: readonly OwnerRef[];
  /** The owners that hold the locks until the attempt succeeds. */
  readonly predecessors: readonly OwnerRef[];
  readonly leaseTime: number;
  readonly command: (backend: QuorumMember) => Promise<NodeReply>;
}

/** No majority granted the attempt. */
export interface MajorityBusy {
  readonly granted: false;
  /** The lock that was busy: the first, if several were. */
  readonly index: number;
  /** What the nodes answered about that lock. */
  readonly busyNodes: readonly NodeBusy[];
  /** The owner that a majority named. */
  readonly holder: string | undefined;
  /** How many nodes granted the attempt. */
  readonly free: number;
  /** Whether nodes that have granted the attempt, or may still grant it, are being asked to release the locks. */
  readonly spent: boolean;
}

export type MajorityReply = GrantedTokens | MajorityBusy;

/**
 * Asks all nodes at once for locks. If a majority grants them, the attempt succeeds. The grant gets the largest token
 * from that majority. First, the token counters of its other nodes are raised to this value, so that every later
 * majority includes a node that knows the token. Without a majority, everything is revoked, including what a slow node
 * grants later.
 *
 * @throws BackendError when too few nodes answered
 * @see https://redis.io/docs/latest/develop/use/patterns/distributed-locks/ (the Redlock algorithm)
 */
export async function attempt(nodes: QuorumNodes, request: QuorumRequest): Promise<MajorityReply> {
  const { owners, predecessors, leaseTime, command } = request;
  const { all, majority } = nodes;
  const timeout = nodes.timeoutFor(leaseTime);
  const calls = all.map((node) => node.acquire([...owners, ...predecessors], timeout, command));
  const collected = await collectReplies(calls, majorityAgrees(all.length, isGrant));
  const grants = [...collected.replies].filter((entry): entry is [number, GrantedTokens] => isGrant(entry[1]));
  if (grants.length < majority) {
    revokeAll(nodes, calls, collected, request, 'quietly');
    if (collected.replies.size < majority) throw noMajorityError(collected, all.length);
    return toMajorityBusy(collected, all.length, majority);
  }
  try {
    const grant = await agreeOnTokens(nodes, new Map(grants), owners, timeout);
    cleanUp(nodes, calls, collected, request);
    return grant;
  } catch (error) {
    // Other callers may have seen one of these owners as the holder, and may be waiting for its release message.
    revokeAll(nodes, calls, collected, request, 'publish');
    throw error;
  }
}

function toMajorityBusy(collected: NodeReplies<NodeReply>, nodes: number, majority: number): MajorityBusy {
  const all = [...collected.replies.values()].filter(isBusy);
  const index = Math.min(...all.map((reply) => reply.index));
  const busyNodes = all.filter((reply) => reply.index === index);
  const named = mostCommon(busyNodes.map(({ holder }) => holder));
  const holder = busyNodes.filter((reply) => reply.holder === named).length >= majority ? named : undefined;
  const spent = all.filter(hasNothing).length < nodes;
  return { granted: false, index, busyNodes, holder, free: countReplies(collected, isGrant), spent };
}

/** Releases what was granted, or may still be granted. */
function revokeAll(
  nodes: QuorumNodes,
  calls: readonly NodeCall<NodeReply>[],
  { replies }: NodeReplies<NodeReply>,
  { owners, predecessors, leaseTime }: QuorumRequest,
  manner: 'quietly' | 'publish',
): void {
  for (const [index, { settled }] of calls.entries()) {
    const reply = replies.get(index);
    if (reply !== undefined && hasNothing(reply)) continue;
    const grant: Promise<PossibleGrant> = settled.then(
      (answer) => ({ possible: !hasNothing(answer), validUntil: answer.validUntil }),
      ({ outcome, validUntil }: BackendError) => ({ possible: outcome === 'unknown', validUntil }),
    );
    for (const owner of [...owners, ...predecessors])
      nodes.all[index].revoke(owner, grant, leaseTime, manner === 'quietly');
  }
}

/**
 * Cleans up after an attempt that succeeded: predecessors may still be on nodes that did not answer, and writers are
 * registered as waiters on nodes that are busy, however late they say so.
 */
function cleanUp(
  nodes: QuorumNodes,
  calls: readonly NodeCall<NodeReply>[],
  { replies }: NodeReplies<NodeReply>,
  { owners, predecessors, leaseTime }: QuorumRequest,
): void {
  const writers = owners.filter(({ type }) => type === 'write');
  for (const [index, node] of nodes.all.entries()) {
    if (!replies.has(index))
      for (const owner of predecessors) node.revoke(owner, Promise.resolve({ possible: true }), leaseTime, true);
    if (writers.length === 0) continue;
    const unregister = (reply: NodeReply) => {
      if (isBusy(reply))
        for (const owner of writers) node.removeWaiter(owner, nodes.nodeTimeout).inTime.catch(() => {});
    };
    calls[index].settled.then(unregister, () => {});
  }
}

/** It answered busy, and no other copy of the request is under way. */
function hasNothing({ granted, validUntil }: NodeReply): boolean {
  return !granted && validUntil === undefined;
}

function isGrant(reply: NodeReply): reply is GrantedTokens {
  return reply.granted;
}

function isBusy(reply: NodeReply): reply is NodeBusy {
  return !reply.granted;
}
