import { inspect } from 'node:util';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { createCluster as createCluster5 } from 'redis5';
import type { Connection } from '../../../lib/backends/redis/links/connection.js';
import { ConnectionError } from '../../../lib/backends/redis/links/connection-error.js';
import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { advisoryLocks, rowLocks } from '../../../lib/sql.js';
import { runCli } from '../../cli/run-cli.js';
import { isNodeRedis, itOfIoredis } from '../../support/client-under-test.js';

const logger = { warn: () => {}, error: () => {} };

/** Both halves of each password are secret. */
const FIRST = 'Tr0ub4dor';
const SECOND = 'c0rrectHorse';

const CREDENTIALS: [what: string, credentials: string][] = [
  ['#', `:${FIRST}#${SECOND}@`],
  ['# after a user name', `clerk:${FIRST}#${SECOND}@`],
  ['# after digits', `clerk:12#${SECOND}@`],
  ['/', `:${FIRST}/${SECOND}@`],
  ['/ after a user name', `clerk:${FIRST}/${SECOND}@`],
  ['/ after digits', `clerk:12/${SECOND}@`],
  ['?', `:${FIRST}?${SECOND}@`],
  ['? after digits', `clerk:12?${SECOND}@`],
  ['@ and /', `clerk:12/${FIRST}@${SECOND}@`],
  ['%', `clerk:50%${SECOND}@`],
];

const sentinelRootNodes = [{ host: '127.0.0.1', port: 26_379 }];
const good = 'redis://127.0.0.1:7000';

/** Every way of giving a URL. */
const WAYS: Record<string, (url: string) => Partial<RedisLockOptions>> = {
  'as the connection': (connection) => ({ connection }),
  'in a quorum': (url) => ({ quorum: [good, good, url] }),
  'to a cluster of ioredis': (url) => ({ connection: { nodes: [url] } }),
  'as the second node of ioredis': (url) => ({ connection: { nodes: [good, url] } }),
  'to node-redis': (url) => ({ connection: { client: 'node-redis', url } }),
  'to node-redis, with tls beside it': (url) => ({ connection: { client: 'node-redis', url, socket: { tls: true } } }),
  'to a cluster of node-redis': (url) => ({ connection: { client: 'node-redis', rootNodes: [{ url }] } }),
  'as the second root node': (url) => ({ connection: { client: 'node-redis', rootNodes: [{ url: good }, { url }] } }),
  'in a cluster client of node-redis 6': (url) => ({ connection: createCluster({ rootNodes: [{ url }] }) as never }),
  'in a cluster client of node-redis 5': (url) => ({ connection: createCluster5({ rootNodes: [{ url }] }) as never }),
};

/** Where a URL does not belong. */
const WRONG: Record<string, (url: string) => Connection | (() => Connection)> = {
  'as an option of ioredis': (url) => ({ url }) as never,
  'as its host': (host) => ({ host }),
  'as its path': (path) => ({ path }),
  'as the host of a Sentinel': (host) => ({ sentinels: [{ host }], name: 'mymaster' }),
  'as the host of a node': (host) => ({ nodes: [{ host }] }),
  'as the url of a node': (url) => ({ nodes: [{ url } as never] }),
  'as a URL object': (url) => new URL(url) as never,
  'as a URL object to node-redis': (url) => ({ client: 'node-redis', url: new URL(url) }) as never,
  'as a URL object to a cluster': (url) => ({ client: 'node-redis', rootNodes: [{ url: new URL(url) }] }),
  'from a function': (url) => (() => url) as never,
  'in a list': (url) => [url] as never,
  'as the host of an ioredis client': (host) => new Redis({ host, lazyConnect: true }),
  'as the host of a cluster client': (host) => new Cluster([{ host }], { lazyConnect: true }),
  'as the host of node-redis': (host) => ({ client: 'node-redis', socket: { host } }),
  'as the path of node-redis': (path) => ({ client: 'node-redis', socket: { path } }),
  'as the host of a node-redis client': (host) => createClient({ socket: { host } }) as never,
  'as the host of a root node': (host) => ({ client: 'node-redis', rootNodes: [{ socket: { host } }] }),
  'as a root node': (url) => ({ client: 'node-redis', rootNodes: [url as never] }),
  'as the host of a Sentinel of node-redis': (host) => ({
    client: 'node-redis',
    name: 'mymaster',
    sentinelRootNodes: [{ host, port: 26_379 }],
  }),
  'in the defaults of a cluster': (url) => ({ client: 'node-redis', rootNodes: [{ url: good }], defaults: { url } }),
  'for the master behind Sentinels': (url) => ({
    client: 'node-redis',
    name: 'mymaster',
    sentinelRootNodes,
    nodeClientOptions: { url },
  }),
  'for the Sentinels themselves': (url) => ({
    client: 'node-redis',
    name: 'mymaster',
    sentinelRootNodes,
    sentinelClientOptions: { url },
  }),
};

/** The error, after it was searched for the password. */
function refusalOf(open: () => unknown): Error {
  let refusal: unknown;
  try {
    open();
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toBeInstanceOf(LockConfigurationError);
  const { cause } = refusal as Error;
  if (cause !== undefined) expect(cause).toBeInstanceOf(ConnectionError);
  const all = inspect(refusal, { depth: 20, showHidden: true });
  expect(all).not.toContain(FIRST);
  expect(all).not.toContain(SECOND);
  return refusal as Error;
}

describe.each(CREDENTIALS)('a password with %s in a URL', (_, credentials) => {
  // With TEST_CLIENT=node-redis, options of ioredis are replaced before they are checked.
  const ways = Object.entries(WAYS).filter(([way]) => !isNodeRedis || !way.includes(' ioredis'));
  it.each(ways)('given %s: the error says what to write, and does not show it', (_way, options) => {
    const { message } = refusalOf(() =>
      createLockService({ logger, ...options(`redis://${credentials}127.0.0.1:6379/0`) } as RedisLockOptions),
    );
    expect(message).toMatch(/write # as %23, \/ as %2F, \? as %3F, @ as %40 and % as %25.*encodeURIComponent\(\)/);
  });

  it.each(['postgres', 'mysql'])('of %s: the error says what to write, and does not show it', (scheme) => {
    for (const backend of [rowLocks, advisoryLocks]) {
      const { message } = refusalOf(() => backend({ url: `${scheme}://${credentials}127.0.0.1:5432/shop` }));
      expect(message).toMatch(/percent-encoded \(encodeURIComponent\)|as encodeURIComponent\(\) does|Write it as %25/);
    }
  });

  it('given to the command line: the error does not show it', async () => {
    const { code, stderr } = await runCli(['ls'], `redis://${credentials}127.0.0.1:6379/0`);
    expect(code).toBe(2);
    expect(stderr).toContain('write # as %23');
    expect(stderr).not.toMatch(new RegExp(`${FIRST}|${SECOND}`));
  });
});

describe('a URL where none belongs', () => {
  itOfIoredis.each(Object.entries(WRONG))('%s is refused, and not shown', (_, connection) => {
    const url = `redis://clerk:${FIRST}${SECOND}@127.0.0.1:6379`;
    refusalOf(() => createLockService({ logger, connection: connection(url) as Connection }));
  });
});

it('encoded passwords are read', async () => {
  const encoded = `redis://clerk:${encodeURIComponent('a#b/c?d@e%f')}@127.0.0.1:6379/0`;
  const open = (connection: Connection) => createLockService({ logger, connection }).close();
  await open(encoded);
  await open({ client: 'node-redis', url: encoded });
  await open({ client: 'node-redis', url: 'unix:///tmp/redis.sock' });
  await open({ client: 'node-redis', rootNodes: [{ url: encoded }] });
  await open({ path: '/tmp/redis@home.sock' });
});
