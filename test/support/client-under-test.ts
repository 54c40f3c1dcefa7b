/**
 * `TEST_CLIENT=node-redis npm run jest -- …`: what tests connect is connected by node-redis. See open-by-node-redis.ts.
 */
export const isNodeRedis = process.env.TEST_CLIENT === 'node-redis';

/** For what node-redis does not have: options of ioredis, and commands that it sends again. */
export const itOfIoredis: jest.It = isNodeRedis ? it.skip : it;

/** Calls back when a command that was just sent is on its way: node-redis writes at the end of the turn. */
export function whenWritten(work: () => void): void {
  setImmediate(isNodeRedis ? () => setImmediate(work) : work);
}
