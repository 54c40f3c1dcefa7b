import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import Valkey from 'iovalkey';
import { createClient } from 'redis';
import { createClient as createClient5 } from 'redis5';
import { type Adapter, describeLinks } from './describe-links.js';

/** A client that the user has made, and closes. */
function borrowed(
  Client: new (url: string) => { on(event: 'error', listener: () => void): unknown; disconnect(): void },
): Adapter {
  return {
    sendsAgain: true,
    isBorrowed: true,
    connect: (url) => {
      const client = new Client(url);
      client.on('error', () => {});
      return { connection: client as Redis, close: () => client.disconnect() };
    },
  };
}

const nodeRedis = (create: typeof createClient, RESP: 2 | 3): Adapter => ({
  sendsAgain: false,
  connect: (url) => ({ connection: create({ url, RESP }) }),
});

describeLinks('ioredis', { sendsAgain: true, connect: (connection) => ({ connection }) });
describeLinks('a client of ioredis 6', borrowed(Redis as never));
describeLinks('a client of ioredis 5', borrowed(Redis5 as never));
describeLinks('a client of iovalkey', borrowed(Valkey as never));
describeLinks('a client of node-redis 6, with RESP 3', nodeRedis(createClient, 3));
describeLinks('a client of node-redis 6, with RESP 2', nodeRedis(createClient, 2));
describeLinks('a client of node-redis 5, with RESP 3', nodeRedis(createClient5 as never, 3));
describeLinks('a client of node-redis 5, with RESP 2', nodeRedis(createClient5 as never, 2));
describeLinks('options for node-redis', {
  sendsAgain: false,
  connect: (url) => ({ connection: { client: 'node-redis', url } }),
});
