import { Redis } from 'ioredis';

/** Commands that this process has sent. */
export const sent = { commands: 0 };

/**
 * Counts the commands that any ioredis client sends from now on. The server alone cannot distinguish them from those
 * that scripts call.
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

/** Counts the commands that this node-redis client sends. It is a proxy, whose methods run on the object behind it. */
export function countNodeRedis(client: NodeRedisClient): void {
  const itself = Object.getPrototypeOf(client) as NodeRedisClient;
  const send = itself.sendCommand;
  itself.sendCommand = function (this: NodeRedisClient, ...args) {
    sent.commands++;
    return send.apply(this, args);
  };
}
