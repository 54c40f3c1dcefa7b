import type { IpcNetConnectOpts, TcpNetConnectOpts } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import type { createClient, createCluster, createSentinel } from '@redis/client';
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { type ClusterOptions as ClusterOptions5, Redis as Redis5, type RedisOptions as RedisOptions5 } from 'ioredis5';
import type { RedisOptions as ValkeyOptions } from 'iovalkey';
import type {
  createClient as createClient5,
  createCluster as createCluster5,
  createSentinel as createSentinel5,
} from 'redis5';
import type { Connection, NodeRedisSocket } from '../../../lib/backends/redis/links/connection.js';
import { checkCluster, checkRedisOptions } from '../../../lib/backends/redis/links/ioredis/check-ioredis-options.js';
import { checkNodeRedisOptions } from '../../../lib/backends/redis/links/node-redis/check-node-redis-options.js';
import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';

const silent = { warn: () => {}, error: () => {} };

/** The compiler refuses a record that lacks one of these names, or has another. */
type EachOf<T> = Readonly<Record<keyof T, unknown>>;

/** The options that a function takes. */
type OptionsOf<T extends (options: never) => unknown> = NonNullable<Parameters<T>[0]>;

const call = () => null;

/** What the types of ioredis 5, ioredis 6 and iovalkey document. The compiler refuses a list that is not complete. */
const ioredisOptions: EachOf<RedisOptions & RedisOptions5 & ValkeyOptions> = {
  host: 'h',
  port: 1,
  path: '/tmp/redis.sock',
  family: 4,
  familyFallback: true,
  tls: {},
  username: 'u',
  password: 'p',
  db: 1,
  connectionName: 'locks',
  keyPrefix: 'p',
  connectTimeout: 1,
  disconnectTimeout: 1,
  commandTimeout: 1,
  socketTimeout: 1,
  blockingTimeout: 1,
  blockingTimeoutGrace: 1,
  keepAlive: 1,
  noDelay: true,
  disableClientInfo: true,
  clientInfoTag: 't',
  protocol: 3,
  replyMapping: 'legacy',
  stringNumbers: true,
  lazyConnect: true,
  readOnly: false,
  monitor: false,
  offlineQueue: true,
  commandQueue: true,
  enableOfflineQueue: true,
  enableReadyCheck: true,
  enableAutoPipelining: true,
  autoPipeliningIgnoredCommands: [],
  autoResubscribe: true,
  autoResendUnfulfilledCommands: true,
  maxRetriesPerRequest: null,
  maxLoadingRetryTime: 1,
  showFriendlyErrorStack: true,
  scripts: {},
  himportFieldsets: [],
  retryStrategy: call,
  reconnectOnError: call,
  Connector: class {},
  sentinels: [{ host: 'h', port: 26_379 }],
  name: 'mymaster',
  role: 'master',
  sentinelUsername: 'u',
  sentinelPassword: 'p',
  sentinelTLS: {},
  enableTLSForSentinelMode: true,
  sentinelRetryStrategy: call,
  sentinelReconnectStrategy: call,
  sentinelCommandTimeout: 1,
  sentinelMaxConnections: 1,
  preferredSlaves: call,
  natMap: call,
  updateSentinels: true,
  failoverDetector: true,
};

const ioredisClusterOptions: EachOf<ClusterOptions & ClusterOptions5> = {
  redisOptions: {},
  keyPrefix: 'p',
  showFriendlyErrorStack: true,
  lazyConnect: true,
  clusterRetryStrategy: call,
  clusterNodeRetryStrategy: call,
  enableOfflineQueue: true,
  enableReadyCheck: true,
  enableAutoPipelining: true,
  autoPipeliningIgnoredCommands: [],
  scaleReads: call,
  maxRedirections: 1,
  retryDelayOnFailover: 1,
  retryDelayOnClusterDown: 1,
  retryDelayOnTryAgain: 1,
  retryDelayOnMoved: 1,
  slotsRefreshTimeout: 1,
  slotsRefreshInterval: 1,
  shardedSubscribers: false,
  useSRVRecords: false,
  resolveSrv: call,
  dnsLookup: call,
  natMap: call,
  scripts: {},
  himportFieldsets: [],
};

/** What the types of node-redis 5 and 6 document for `createClient()`. */
const nodeRedisOptions: EachOf<OptionsOf<typeof createClient> & OptionsOf<typeof createClient5>> = {
  url: 'redis://h',
  socket: { host: 'h', reconnectStrategy: call },
  username: 'u',
  password: 'p',
  credentialsProvider: { type: 'async-credentials-provider', credentials: call },
  name: 'locks',
  database: 1,
  keyPrefix: 'p',
  commandsQueueMaxLength: 1,
  disableOfflineQueue: true,
  readonly: false,
  pingInterval: 1,
  commandOptions: {},
  clientSideCache: {},
  himportRegistry: {},
  disableClientInfo: true,
  clientInfoTag: 't',
  emitInvalidate: false,
  maintNotifications: 'disabled',
  maintEndpointType: 'auto',
  maintRelaxedCommandTimeout: 1,
  maintRelaxedSocketTimeout: 1,
  modules: {},
  functions: {},
  scripts: {},
  RESP: 3,
  unstableResp3: true,
};

/** Each server has its own address, so a URL is refused where several share options. */
const sharedOptions = { ...nodeRedisOptions, url: undefined };

const nodeRedisClusterOptions: EachOf<OptionsOf<typeof createCluster> & OptionsOf<typeof createCluster5>> = {
  rootNodes: [nodeRedisOptions],
  defaults: sharedOptions,
  keyPrefix: 'p',
  minimizeConnections: true,
  useReplicas: true,
  maxCommandRedirections: 1,
  topologyRefreshOnReconnectionAttemptStrategy: call,
  nodeAddressMap: call,
  clientSideCache: {},
  himportRegistry: {},
  commandOptions: {},
  modules: {},
  functions: {},
  scripts: {},
  RESP: 3,
  unstableResp3: true,
};

const nodeRedisSentinelOptions: EachOf<OptionsOf<typeof createSentinel> & OptionsOf<typeof createSentinel5>> = {
  name: 'mymaster',
  sentinelRootNodes: [{ host: 'h', port: 26_379 }],
  maxCommandRediscovers: 1,
  nodeClientOptions: sharedOptions,
  sentinelClientOptions: sharedOptions,
  masterPoolSize: 1,
  replicaPoolSize: 1,
  nodeAddressMap: call,
  scanInterval: 1,
  passthroughClientErrorEvents: true,
  reserveClient: true,
  clientSideCache: {},
  keyPrefix: 'p',
  commandOptions: {},
  modules: {},
  functions: {},
  scripts: {},
  RESP: 3,
  unstableResp3: true,
};

/** What the types of Node.js document for a socket. */
const socketOptions: EachOf<TcpNetConnectOpts & IpcNetConnectOpts & ConnectionOptions> = {
  ALPNCallback: 1,
  ALPNProtocols: 1,
  SNICallback: 1,
  allowHalfOpen: 1,
  allowPartialTrustChain: 1,
  autoSelectFamily: 1,
  autoSelectFamilyAttemptTimeout: 1,
  blockList: 1,
  ca: 1,
  cert: 1,
  checkServerIdentity: 1,
  ciphers: 1,
  clientCertEngine: 1,
  crl: 1,
  dhparam: 1,
  ecdhCurve: 1,
  enableTrace: 1,
  family: 1,
  fd: 1,
  hints: 1,
  honorCipherOrder: 1,
  host: 1,
  keepAlive: 1,
  keepAliveInitialDelay: 1,
  key: 1,
  localAddress: 1,
  localPort: 1,
  lookup: 1,
  maxVersion: 1,
  minDHSize: 1,
  minVersion: 1,
  noDelay: 1,
  onread: 1,
  passphrase: 1,
  path: 1,
  pfx: 1,
  port: 1,
  privateKeyEngine: 1,
  privateKeyIdentifier: 1,
  pskCallback: 1,
  readable: 1,
  rejectUnauthorized: 1,
  requestCert: 1,
  secureContext: 1,
  secureOptions: 1,
  secureProtocol: 1,
  servername: 1,
  session: 1,
  sessionIdContext: 1,
  sessionTimeout: 1,
  sigalgs: 1,
  signal: 1,
  socket: 1,
  ticketKeys: 1,
  timeout: 1,
  writable: 1,
};

describe('an option of a connection', () => {
  it.each<[string, unknown, RegExp]>([
    ['misspelt, of ioredis', { hots: 'x' }, /has 'hots', which ioredis would ignore: did you mean 'host'\?/],
    ['misspelt, with a function', { retryStrategie: 1 }, /did you mean 'retryStrategy'\?/],
    [
      'unknown',
      { host: 'h', quux: { a: 1 } },
      /has 'quux', which ioredis would ignore: remove it .* create the client/,
    ],
    ['of another library', { type: 'single', url: 'redis://h' }, /which ioredis would ignore/],
    ['a client that does not exist', { client: 'ioredis', host: 'h' }, /only client that can be named is/],
    ['a mock', { get() {}, set() {} }, /a function 'get'.* looks like a mock.*backend: 'memory'/],
    ['a function where text belongs', { host: () => 'h' }, /a function 'host'.* looks like a mock/],
    ['misspelt, of a cluster', { nodes: [1], options: { scaleRead: 'x' } }, /did you mean 'scaleReads'/],
    ['misspelt, of all nodes', { nodes: [1], options: { redisOptions: { pasword: 'x' } } }, /did you mean 'password'/],
    ['misspelt, of a node', { nodes: [{ hots: 'x' }] }, /A cluster node of the connection has 'hots'.*'host'\?/],
    [
      'misspelt, of node-redis',
      { client: 'node-redis', databse: 3 },
      /node-redis would ignore: did you mean 'database'/,
    ],
    ['of ioredis, for node-redis', { client: 'node-redis', host: 'h' }, /has 'host'.*in socket: { host, port, path/],
    ['misspelt, of a socket', { client: 'node-redis', socket: { hots: 'x' } }, /socket .* did you mean 'host'\?/],
    ['hostname of a socket', { client: 'node-redis', socket: { hostname: 'x' } }, /did you mean 'host'\?/],
    ['a mock, for node-redis', { client: 'node-redis', get() {} }, /a function 'get'.* looks like a mock/],
    ['of a root node', { client: 'node-redis', rootNodes: [{ hots: 'x' }] }, /A root node .* has 'hots'/],
    [
      'of all root nodes',
      { client: 'node-redis', rootNodes: [{}], defaults: { db: 1 } },
      /defaults .* calls it database/,
    ],
    [
      'of a master of node-redis',
      { client: 'node-redis', name: 'm', sentinelRootNodes: [{ host: 'h', port: 1 }], nodeClientOptions: { db: 3 } },
      /nodeClientOptions .* calls it database/,
    ],
  ])('that is %s is refused, with what to do', (_, connection, message) => {
    const service = () => createLockService({ connection: connection as Connection, logger: silent });
    expect(service).toThrow(LockConfigurationError);
    expect(service).toThrow(message);
  });

  it('that ioredis documents is accepted', () => {
    checkRedisOptions(ioredisOptions as RedisOptions);
    checkCluster({
      nodes: [7_000],
      options: { ...ioredisClusterOptions, redisOptions: ioredisOptions } as ClusterOptions,
    });
  });

  it('that ioredis adds by itself is accepted, because options may be copied from a client', () => {
    const [six, five] = [new Redis({ lazyConnect: true }), new Redis5({ lazyConnect: true })];
    for (const { options } of [six, five]) checkRedisOptions(options as RedisOptions);
    const cluster = new Cluster([7_000], { lazyConnect: true });
    checkCluster({ nodes: [7_000], options: cluster.options });
    for (const client of [six, five, cluster]) client.disconnect();
  });

  it('that node-redis documents is accepted', () => {
    for (const options of [nodeRedisOptions, nodeRedisClusterOptions, nodeRedisSentinelOptions])
      checkNodeRedisOptions(options as object);
  });

  it('that Node.js documents for sockets is accepted', () => {
    checkNodeRedisOptions({ socket: socketOptions as NodeRedisSocket });
  });
});
