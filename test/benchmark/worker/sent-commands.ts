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

/** Messages of subscriptions that this process has received. */
export const received = { messages: 0 };

let counted = false;

/** Counts the messages that any ioredis client delivers to its listeners from now on. May be called repeatedly. */
export function countMessages(): void {
  if (counted) return;
  counted = true;
  const emit = Redis.prototype.emit;
  Redis.prototype.emit = function (this: Redis, event: string | symbol, ...args: unknown[]) {
    if (event === 'message' || event === 'smessage') received.messages++;
    return emit.call(this, event, ...args);
  };
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
