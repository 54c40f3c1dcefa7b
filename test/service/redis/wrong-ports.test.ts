import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { Redis as Valkey } from 'iovalkey';
import { createClient } from 'redis';
import { createClient as createClient5 } from 'redis5';
import { connectionAdvice } from '../../../lib/backends/redis/connection/connection-advice.js';
import type { Connection } from '../../../lib/backends/redis/links/connection.js';
import { LockUnavailableError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import { isNodeRedis } from '../../support/client-under-test.js';
import { CERTIFICATE, KEY, TlsFront } from '../../support/network/tls-front.js';
import { errorOf } from '../../support/section.js';
import { freePort } from '../../support/servers/free-port.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

const PASSWORD = 'Tr0ub4dor';
const host = '127.0.0.1';

const AN_HTTP_SERVER = /an HTTP server answered there. Check the port/;
const A_SENTINEL =
  /a Sentinel answered, which has no locks. Give its address in sentinels.*sentinelRootNodes.*'mymaster'/;
const MAYBE_A_SENTINEL = /unknown command 'cluster'.*the server may be a Sentinel: give its address in sentinels/i;
const NO_SENTINEL = /a Redis server answered there, and not a Sentinel/;
const NO_CLUSTER = /no node of a cluster: give \{ host, port \} or a URL instead of nodes \(node-redis: rootNodes\)/;
const CLOSED =
  /the server closed the connection.*the port may be one for TLS: write rediss:\/\/, or set tls \(node-redis/;
const CLOSED_TLS = /the server closed the connection.*the port may be one without TLS: write redis:\/\//;
const USES_TLS =
  /a server answered there that uses TLS: write rediss:\/\/, or set tls \(node-redis: tls: true in socket\)/;
const NO_TLS = /a server answered there that does not use TLS. Check the port; .* write redis:\/\/, or leave out tls/;
const NO_HANDSHAKE = /if the server does not use TLS, write redis:\/\/, or leave out tls/;

describe('the port of something else than a Redis without TLS', () => {
  const ports: Record<string, number> = {};
  let redis: RedisServer;
  let secure: RedisServer;
  let sentinel: RedisServer;
  let front: TlsFront;
  let alerts: TcpServer;
  let http: Server;

  beforeAll(async () => {
    redis = await startRedis();
    await Promise.all([writeFile(`${redis.folder}/key`, KEY), writeFile(`${redis.folder}/certificate`, CERTIFICATE)]);
    const tlsPort = await freePort();
    const files = ['--tls-cert-file', `${redis.folder}/certificate`, '--tls-key-file', `${redis.folder}/key`];
    secure = await startRedis({ args: ['--tls-port', String(tlsPort), ...files, '--tls-auth-clients', 'no'] });
    const config = `sentinel monitor mymaster ${host} ${redis.port} 1\n`;
    sentinel = await startRedis({ config, args: ['--sentinel'], ready: /\+monitor/ });
    front = await TlsFront.to(redis.port);
    http = createServer((_, response) => response.end('shop')).listen(0, host);
    // What a TLS server written in Go answers to anything else: an alert. Others close the connection.
    alerts = createTcpServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end(Buffer.from('15030100020246', 'hex')));
    }).listen(0, host);
    await Promise.all([http, alerts].map((server) => once(server, 'listening')));
    Object.assign(ports, {
      redis: redis.port,
      'TLS Redis': tlsPort,
      Sentinel: sentinel.port,
      'TLS proxy': front.port,
      'TLS proxy that says so': (alerts.address() as AddressInfo).port,
      HTTP: (http.address() as AddressInfo).port,
    });
  });
  afterAll(async () => {
    http?.close();
    alerts?.close();
    front?.stop();
    await Promise.all([redis, secure, sentinel].map((server) => server?.stop()));
  });

  /** The ways to give an address, without TLS and with it. */
  const WAYS: Record<string, (port: number) => Connection> = {
    ioredis: (port) => ({ host, port, password: PASSWORD }),
    'ioredis, database 3': (port) => ({ host, port, db: 3 }),
    'ioredis over TLS': (port) => ({ host, port, password: PASSWORD, tls: {} }),
    'ioredis, a cluster': (port) => ({ nodes: [{ host, port }], options: { redisOptions: { password: PASSWORD } } }),
    'ioredis, a cluster over TLS': (port) => ({ nodes: [{ host, port }], options: { redisOptions: { tls: {} } } }),
    'ioredis, a Sentinel': (port) => ({ sentinels: [{ host, port }], name: 'mymaster', password: PASSWORD }),
    'node-redis': (port) => ({ client: 'node-redis', url: `redis://:${PASSWORD}@${host}:${port}` }),
    'node-redis, database 3': (port) => ({ client: 'node-redis', url: `redis://${host}:${port}/3` }),
    'node-redis over TLS': (port) => ({ client: 'node-redis', socket: { host, port, tls: true } }),
    'node-redis, a cluster': (port) => ({ client: 'node-redis', rootNodes: [{ socket: { host, port } }] }),
    'node-redis, a cluster over TLS': (port) => ({
      client: 'node-redis',
      rootNodes: [{ socket: { host, port } }],
      defaults: { socket: { tls: true } },
    }),
    'node-redis, a Sentinel': (port) => ({
      client: 'node-redis',
      sentinelRootNodes: [{ host, port }],
      name: 'mymaster',
    }),
  };

  const CASES: [what: string, way: string, says: RegExp][] = [
    ['Sentinel', 'ioredis', A_SENTINEL],
    ['Sentinel', 'ioredis, database 3', A_SENTINEL],
    ['Sentinel', 'ioredis, a cluster', MAYBE_A_SENTINEL],
    ['Sentinel', 'node-redis', A_SENTINEL],
    ['Sentinel', 'node-redis, database 3', /unknown command 'SELECT'.*the server may be a Sentinel/],
    ['Sentinel', 'node-redis, a cluster', MAYBE_A_SENTINEL],
    ['HTTP', 'ioredis', AN_HTTP_SERVER],
    ['HTTP', 'ioredis, a cluster', /an HTTP server answered there|it belongs to another service/],
    ['HTTP', 'ioredis, a Sentinel', AN_HTTP_SERVER],
    ['HTTP', 'ioredis over TLS', NO_TLS],
    ['HTTP', 'node-redis', AN_HTTP_SERVER],
    ['HTTP', 'node-redis, a cluster', AN_HTTP_SERVER],
    ['HTTP', 'node-redis, a Sentinel', AN_HTTP_SERVER],
    ['HTTP', 'node-redis over TLS', NO_TLS],
    ['HTTP', 'ioredis, a cluster over TLS', CLOSED_TLS],
    ['TLS Redis', 'ioredis', CLOSED],
    ['TLS Redis', 'ioredis, a cluster', CLOSED],
    ['TLS Redis', 'ioredis, a Sentinel', CLOSED],
    ['TLS Redis', 'node-redis', CLOSED],
    ['TLS Redis', 'node-redis, a cluster', CLOSED],
    ['TLS Redis', 'node-redis, a Sentinel', CLOSED],
    ['TLS proxy', 'ioredis', CLOSED],
    ['TLS proxy', 'node-redis', CLOSED],
    ['TLS proxy that says so', 'ioredis', USES_TLS],
    ['TLS proxy that says so', 'ioredis, a Sentinel', USES_TLS],
    ['TLS proxy that says so', 'node-redis', USES_TLS],
    ['TLS proxy that says so', 'node-redis, a Sentinel', USES_TLS],
    ['redis', 'ioredis over TLS', NO_HANDSHAKE],
    ['redis', 'ioredis, a cluster over TLS', NO_HANDSHAKE],
    ['redis', 'node-redis over TLS', NO_HANDSHAKE],
    ['redis', 'node-redis, a cluster over TLS', NO_HANDSHAKE],
    ['redis', 'ioredis, a Sentinel', NO_SENTINEL],
    ['redis', 'node-redis, a Sentinel', NO_SENTINEL],
    ['redis', 'ioredis, a cluster', NO_CLUSTER],
    ['redis', 'node-redis, a cluster', NO_CLUSTER],
  ];

  // With TEST_CLIENT=node-redis, options of ioredis would lose what these cases need.
  it.each(isNodeRedis ? CASES.filter(([, way]) => way.startsWith('node-redis')) : CASES)(
    '%s given to %s: the error says what is there and what to change',
    async (what, way, says) => {
      const connection = WAYS[way]!(ports[what]!);
      const locks = createLockService({ connection, commandTimeout: 300, shutdownTimeout: 50, logger: silent });
      try {
        // The first answers may only arrive later on a busy machine.
        let message = '';
        await until(async () => {
          const error = await errorOf(locks.acquire('order', { waitTime: 100 }));
          expect(error).toBeInstanceOf(LockUnavailableError);
          message = error.message;
          return says.test(message);
        }).catch(() => {});
        expect(message).toMatch(says);
        expect(message).toContain(`${host}:${ports[what]}`);
        expect(message).not.toContain(PASSWORD);
      } finally {
        await locks.close();
      }
    },
  );

  // A borrowed or another version of a client words its errors in another way.
  it.each<[string, (port: number) => Promise<Error>]>([
    ['ioredis 6', (port) => firstError(new Redis({ port, host }))],
    ['ioredis 5', (port) => firstError(new Redis5({ port, host }))],
    ['iovalkey', (port) => firstError(new Valkey({ port, host }))],
    ['redis 6', (port) => firstOf(createClient({ socket: { port, host, reconnectStrategy: false } }))],
    ['redis 5', (port) => firstOf(createClient5({ socket: { port, host, reconnectStrategy: false } }))],
  ])('%s reports HTTP and TLS so that they are recognized', async (_, connect) => {
    expect(connectionAdvice((await connect(ports.HTTP!)).message)).toMatch(AN_HTTP_SERVER);
    expect(connectionAdvice((await connect(ports['TLS proxy that says so']!)).message)).toMatch(USES_TLS);
  });
});

describe('a connection that had worked', () => {
  it.each(['read ECONNRESET', 'write EPIPE', 'Connection is closed.', 'Socket closed unexpectedly'])(
    'was closed by a time limit or a restart, and neither TLS nor protected mode is the reason: %s',
    (message) => {
      expect(connectionAdvice(message)).toMatch(/TLS.*protected mode/);
      expect(connectionAdvice(message, false, true)).toMatch(/had worked.*idle timeout/);
      expect(connectionAdvice(message, true, true)).not.toMatch(/TLS|protected/);
    },
  );

  it('that is silent does not lack TLS', () => {
    expect(connectionAdvice('connect ETIMEDOUT', true)).toMatch(/does not use TLS/);
    expect(connectionAdvice('command timed out', true, true)).toBeUndefined();
  });
});

const silent = { warn: () => {}, error: () => {} };

interface Client {
  on(event: 'error', listener: (error: Error) => void): unknown;
  disconnect(): unknown;
}

function firstError(client: Client): Promise<Error> {
  return new Promise((resolve) =>
    client.on('error', (error) => {
      client.disconnect();
      resolve(error);
    }),
  );
}

function firstOf(client: { connect(): Promise<unknown>; on: Client['on'] }): Promise<Error> {
  return new Promise((resolve) => {
    client.on('error', resolve);
    client.connect().catch(() => {});
  });
}
