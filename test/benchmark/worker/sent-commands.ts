import { Redis } from 'ioredis';

/** Commands that this process has sent. */
export const sent = { commands: 0 };

/**
 * Counts what goes out through any ioredis client from now on: the server alone cannot tell it from what scripts call.
 */
export function countIoredis(): void {
  const send = Redis.prototype.sendCommand;
  Redis.prototype.sendCommand = function (this: Redis, ...args: Parameters<typeof send>) {
    sent.commands++;
    return send.apply(this, args);
  } as typeof send;
}

interface NodeRedisClient {
  sendCommand(...args: never[]): Promise<unknown>;
}

/** Counts what goes out through this node-redis client: its methods run on the object that it stands for. */
export function countNodeRedis(client: NodeRedisClient): void {
  const itself = Object.getPrototypeOf(client) as NodeRedisClient;
  const send = itself.sendCommand;
  itself.sendCommand = function (this: NodeRedisClient, ...args) {
    sent.commands++;
    return send.apply(this, args);
  };
}
