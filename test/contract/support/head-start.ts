import { HEAD_START } from '../../../lib/backends/lock-backend.js';
import type { ContractWorld } from './contract-world.js';

type Request = () => Promise<unknown>;

type Answers<Requests extends readonly Request[]> = {
  readonly [Index in keyof Requests]: Awaited<ReturnType<Requests[Index]>>;
};

/** For how many milliseconds rounds are repeated. */
const PATIENCE = 45_000;

/**
 * Checks what a store does while a head start lasts, which is shorter than a round trip on a busy machine. So the
 * requests of a round are sent together. Rounds that fail are repeated if the head start may have been over: if the
 * answers came too late, or in the first round, whose scripts may have been sent twice.
 *
 * @param begin makes locks and places for one round
 * @param requestsOf a release, and what follows it. All are requests of one client, which sends them in this order
 */
export async function inHeadStart<Round, Requests extends readonly Request[]>(
  world: ContractWorld,
  begin: () => Promise<Round>,
  requestsOf: (round: Round) => Requests,
  check: (answers: Answers<Requests>, round: Round) => Promise<void>,
): Promise<void> {
  const end = performance.now() + PATIENCE;
  for (let count = 0; ; count++) {
    const round = await begin();
    const start = world.now();
    const answers = await inOrder(requestsOf(round));
    const isInTime = count > 0 && world.now() - start < HEAD_START;
    try {
      return await check(answers, round);
    } catch (error) {
      if (isInTime || performance.now() > end) throw error;
    }
  }
}

/** Sends requests without waiting for the answers of those before them. */
async function inOrder<Requests extends readonly Request[]>(requests: Requests): Promise<Answers<Requests>> {
  const answers: Promise<unknown>[] = [];
  for (const request of requests) {
    const answer = request();
    answer.catch(() => {}); // it is awaited below
    answers.push(answer);
    await new Promise(setImmediate);
  }
  return (await Promise.all(answers)) as Answers<Requests>;
}
