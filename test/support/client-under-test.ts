import { blockEventLoop } from './runtime/block-event-loop.js';

/**
 * With `TEST_CLIENT=node-redis npm run jest -- …`, tests connect with node-redis. See open-by-node-redis.ts.
 */
export const isNodeRedis = process.env.TEST_CLIENT === 'node-redis';

/**
 * For tests of features that node-redis does not have, such as options of ioredis, and commands that ioredis sends
 * again.
 */
export const itOfIoredis: jest.It = isNodeRedis ? it.skip : it;

/**
 * Awaits the answer to a command that this turn of the event loop sends, and blocks the loop for `time` milliseconds
 * after the command was written and before its answer is read.
 *
 * Commands are sent at the end of the tick. There ioredis writes them, and node-redis schedules an immediate that
 * writes them. An immediate that is scheduled after that runs in the same phase of the loop, before sockets are read.
 */
export async function acrossBlockedLoop<T>(answer: Promise<T>, time: number): Promise<T> {
  let wasBlocked = false;
  process.nextTick(() =>
    setImmediate(() => {
      blockEventLoop(time);
      wasBlocked = true;
    }),
  );
  const reply = await answer;
  expect(wasBlocked).toBe(true); // otherwise the answer was read too early
  return reply;
}
