import { once } from 'node:events';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { isNodeRedis } from '../../support/client-under-test.js';
import { TlsFront } from '../../support/network/tls-front.js';
import { startProcess } from '../../support/processes/start-process.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

/** A lease that outlasts the tests. */
const LONG = 600_000;

/** Kinds of connections, and after how many turns of the event loop a release was certainly written. */
const BY_IOREDIS: readonly (readonly [connection: string, turns: number])[] = [
  ['ioredis', 1],
  ['ioredis over TLS', 1],
];
const BY_NODE_REDIS: typeof BY_IOREDIS = [
  ['node-redis', 2],
  ['node-redis over TLS', 2],
];

describe('a process that ends right after a release in the background', () => {
  let redis: RedisServer;
  let tls: TlsFront;
  let connections: Record<string, object>;
  let names = 0;

  beforeAll(async () => {
    redis = await startRedis();
    tls = await TlsFront.to(redis.port);
    const host = '127.0.0.1';
    const secure = { rejectUnauthorized: false };
    connections = {
      ioredis: { host, port: redis.port },
      'ioredis over TLS': { host, port: tls.port, tls: secure },
      'node-redis': { client: 'node-redis', socket: { host, port: redis.port } },
      'node-redis over TLS': { client: 'node-redis', socket: { host, port: tls.port, tls: true, ...secure } },
    };
  });
  afterAll(async () => {
    tls?.stop();
    await redis?.stop();
  });

  /** Whether the lock is still held when the process has ended. */
  const isLeft = async (connection: string, how: string, lease = LONG): Promise<boolean> => {
    const name = `order:${++names}`;
    const settings = [JSON.stringify(connections[connection]), 'lock:', name, how, String(lease)];
    const { child } = await startProcess('exit-after-release.ts', ...settings);
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    const client = redis.client();
    // What was written when it ended may arrive slightly later, through the proxy.
    for (let look = 0; look < 8 && (await client.exists(`lock:${name}`)) === 1; look++)
      await new Promise((resolve) => setTimeout(resolve, 25));
    return (await client.exists(`lock:${name}`)) === 1;
  };

  describe.each([...(isNodeRedis ? [] : BY_IOREDIS), ...BY_NODE_REDIS])('on %s', (connection, turns) => {
    it('leaves the lock for its lease when it ends in the same turn', async () => {
      expect(await isLeft(connection, '0')).toBe(true);
    });

    it(`leaves nothing when it ends ${turns} turns of the event loop later, or after close()`, async () => {
      const left = await Promise.all([isLeft(connection, String(turns)), isLeft(connection, 'close')]);
      expect(left).toEqual([false, false]);
    });
  });

  it('keeps others out for a lease at most when it crashes', async () => {
    const locks = createLockService({ connection: redis.url });
    try {
      const lease = 2_000;
      expect(await isLeft('ioredis', 'kill', LONG)).toBe(true);
      const name = `order:${names + 1}`;
      await isLeft('ioredis', 'kill', lease);
      expect(await locks.withLock(name, { waitTime: lease + 5_000 }, () => 'in')).toBe('in');
    } finally {
      await locks.close();
    }
  });
});
