import type { BackendError, LockBackend, LockType, OwnerRef } from '../lock-backend.js';
import { mostCommon } from './majority-view.js';
import { count, poll, undecided, type Votes } from './poll.js';
import type { Granting, Question, QuorumNode } from './quorum-node.js';
import type { QuorumNodes } from './quorum-nodes.js';

/** What one node says to an attempt. */
export type NodeReply = Grant | Refusal;

export interface Grant {
  readonly granted: true;
  /** One of each lock. */
  readonly tokens: readonly number[];
  /** Beside each of them. */
  readonly reserved: number;
}

export interface Refusal {
  readonly granted: false;
  /** Which of the locks is busy. */
  readonly index: number;
  readonly remaining: number;
  readonly holder: string | undefined;
}

export interface Attempt {
  /** Who is to hold the locks then: one owner of each. */
  readonly owners: readonly OwnerRef[];
  /** Who holds them until then, and not any more afterwards. */
  readonly predecessors: readonly OwnerRef[];
  readonly leaseTime: number;
  readonly command: (backend: LockBackend) => Promise<NodeReply>;
}

/** No majority has granted it: what stood in the way. */
export interface Refused {
  readonly granted: false;
  /** The lock that was busy: the first of several. */
  readonly index: number;
  /** Of that lock. */
  readonly refusals: readonly Refusal[];
  /** The owner whom a majority named. */
  readonly holder: string | undefined;
  /** On how many nodes nothing stood in the way. */
  readonly free: number;
}

export type Outcome = Grant | Refused;

/**
 * Asks all nodes at once for something that one of many can have. With a majority it is had, and the token is the largest that
 * the majority gave: the others of it are raised to it first, so that every later majority has a node that knows it. Without a
 * majority everything is given back, also what a slow node grants later.
 *
 * @see https://redis.io/docs/latest/develop/use/patterns/distributed-locks/ (the Redlock algorithm)
 * @throws BackendError when too few nodes answered
 */
export async function attempt(nodes: QuorumNodes, request: Attempt): Promise<Outcome> {
  const { owners, predecessors, leaseTime, command } = request;
  const { all, majority } = nodes;
  const patience = nodes.patience(leaseTime);
  const questions = all.map((node) => node.acquire([...owners, ...predecessors], patience, command));
  const votes = await poll(questions, ({ replies, errors }) => {
    const grants = count({ replies, errors }, ({ granted }) => granted);
    return Math.max(grants, replies.size - grants, errors.size) >= majority;
  });
  const free = count(votes, ({ granted }) => granted);
  if (free < majority) {
    takeBack(nodes, questions, votes, request, 'quietly');
    if (votes.replies.size < majority) throw undecided(votes, all.length);
    return readRefusals(votes, majority);
  }
  try {
    const grant = await agreeOnTokens(nodes, votes, request);
    releaseLeftBehind(nodes, votes, request);
    return grant;
  } catch (error) {
    // Others may have found a holder, and wait for its message.
    takeBack(nodes, questions, votes, request, 'loudly');
    throw error;
  }
}

function readRefusals(votes: Votes<NodeReply>, majority: number): Refused {
  const all = [...votes.replies.values()].filter(isRefusal);
  const index = Math.min(...all.map((refusal) => refusal.index));
  const refusals = all.filter((refusal) => refusal.index === index);
  const named = mostCommon(refusals.map(({ holder }) => holder));
  const holder = refusals.filter((refusal) => refusal.holder === named).length >= majority ? named : undefined;
  return { granted: false, index, refusals, holder, free: votes.replies.size - all.length };
}

/** The tokens of a majority become those of all in it. */
async function agreeOnTokens(
  nodes: QuorumNodes,
  votes: Votes<NodeReply>,
  { owners, leaseTime }: Attempt,
): Promise<Grant> {
  const grants = new Map([...votes.replies].filter((vote): vote is [number, Grant] => vote[1].granted));
  const highest = (of: (grant: Grant, index: number) => number) =>
    owners.map((_, index) => Math.max(...[...grants.values()].map((grant) => of(grant, index))));
  const tokens = highest((grant, index) => grant.tokens[index]);
  const tops = highest((grant, index) => grant.tokens[index] + grant.reserved);
  const { all, majority } = nodes;
  const raises = [...grants].map(([number, grant]) =>
    raise(all[number], clocksBehind(owners, grant, tops), nodes.patience(leaseTime)),
  );
  const raised = await poll(raises, ({ replies }) => replies.size >= majority);
  if (raised.replies.size < majority) throw undecided(raised, all.length);
  return { granted: true, tokens, reserved: tops[0] - tokens[0] };
}

interface Raise {
  readonly key: string;
  readonly type: LockType;
  readonly token: number;
}

/** What to set forth on a node so that its tokens go on above `tops`. Locks that are not fenced draw from one clock. */
function clocksBehind(owners: readonly OwnerRef[], grant: Grant, tops: readonly number[]): Raise[] {
  const raises: Raise[] = [];
  for (const [index, { key, type }] of owners.entries()) {
    const token = tops[index];
    if (grant.tokens[index] + grant.reserved >= token) continue;
    const shared = type === 'fenced' ? -1 : raises.findIndex((other) => other.type !== 'fenced');
    if (shared < 0) raises.push({ key, type, token });
    else if (raises[shared].token < token) raises[shared] = { key, type, token };
  }
  return raises;
}

function raise(node: QuorumNode, raises: readonly Raise[], patience: number): Question<unknown> {
  return node.ask(patience, (backend) =>
    Promise.all(raises.map(({ key, type, token }) => backend.raiseToken(key, type, token))),
  );
}

/** Gives back what was granted, or may be granted yet. A node that has refused has nothing. */
function takeBack(
  nodes: QuorumNodes,
  questions: readonly Question<NodeReply>[],
  votes: Votes<NodeReply>,
  { owners, predecessors, leaseTime }: Attempt,
  manner: 'quietly' | 'loudly',
): void {
  for (const [number, { settled }] of questions.entries()) {
    if (votes.replies.get(number)?.granted === false) continue;
    const granted: Promise<Granting> = settled.then(
      (reply) => ({ possible: reply.granted }),
      ({ outcome, validUntil }: BackendError) => ({ possible: outcome === 'unknown', validUntil }),
    );
    for (const owner of [...owners, ...predecessors])
      nodes.all[number].takeBack(owner, granted, leaseTime, manner === 'quietly');
  }
}

/** A predecessor may still be where no answer came from; a writer that found a node busy has announced itself there. */
function releaseLeftBehind(
  nodes: QuorumNodes,
  { replies }: Votes<NodeReply>,
  { owners, predecessors, leaseTime }: Attempt,
): void {
  for (const [number, node] of nodes.all.entries()) {
    const reply = replies.get(number);
    if (reply === undefined) {
      for (const owner of predecessors) node.takeBack(owner, Promise.resolve({ possible: true }), leaseTime, true);
    } else if (!reply.granted) {
      for (const owner of owners.filter(({ type }) => type === 'write'))
        node.removeWaiter(owner, nodes.nodeTimeout).inTime.catch(() => {});
    }
  }
}

function isRefusal(reply: NodeReply): reply is Refusal {
  return !reply.granted;
}
