import type { Timer } from '../../../runtime.js';
import type { ConnectionContext } from '../connection-context.js';
import { CredentialsSubscription, isStreaming } from './streaming-credentials.js';

// The structure of the parts of node-redis that this library uses (the package `redis` or `@redis/client`, 5 and 6).
// The application decides which of them is installed.

/** The options of a client that are used here. */
export interface NodeRedisOptions {
  readonly url?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly credentialsProvider?: unknown;
  /** The name of the connection in CLIENT LIST. */
  readonly name?: string | undefined;
  readonly socket?: {
    readonly host?: string | undefined;
    readonly port?: number | undefined;
    readonly path?: string;
    readonly tls?: boolean;
    readonly family?: number;
    readonly connectTimeout?: number;
    readonly socketTimeout?: number;
  };
  readonly database?: number | undefined;
  readonly RESP?: 2 | 3 | undefined;
  readonly keyPrefix?: string;
  readonly legacyMode?: boolean;
  readonly readonly?: boolean;
}

/** The members of an AbortSignal that the command queue of node-redis uses. */
export interface QueueSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

type Listener = (message: string, channel: string) => void;

/** A client of one server. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly isPubSubActive: boolean;
  readonly options?: NodeRedisOptions;
  connect(): Promise<unknown>;
  destroy(): void;
  unref(): void;
  duplicate(overrides: object): NodeRedisClient;
  sendCommand(
    args: readonly string[],
    options?: { readonly abortSignal: QueueSignal; readonly timeout: 0 },
  ): Promise<unknown>;
  on(event: string, listener: (...args: never[]) => void): unknown;
  subscribe(channels: readonly string[], listener: Listener): Promise<unknown>;
  pSubscribe(channels: readonly string[], listener: Listener): Promise<unknown>;
  sSubscribe(channels: readonly string[], listener: Listener): Promise<unknown>;
  unsubscribe(channels: readonly string[]): Promise<unknown>;
  pUnsubscribe(channels: readonly string[]): Promise<unknown>;
  sUnsubscribe(channels: readonly string[]): Promise<unknown>;
  ping(): Promise<unknown>;
}

/** The address of a server. It replaces the one in the user's settings. */
export interface Endpoint {
  readonly host?: string;
  readonly port?: number;
}

/** `host:port` */
export function endpointText({ host, port }: Endpoint): string {
  return `${host}:${port}`;
}

export function isSame(one: Endpoint, other: Endpoint): boolean {
  return one.host === other.host && one.port === other.port;
}

/** The addresses of nodes for this process, by the addresses that the servers report. Needed behind NAT. */
export type NodeAddressMap = Readonly<Record<string, Endpoint>> | ((address: string) => Endpoint | undefined);

export function translated(endpoint: Endpoint, map: NodeAddressMap | undefined): Endpoint {
  const address = endpointText(endpoint);
  return (typeof map === 'function' ? map(address) : map?.[address]) ?? endpoint;
}

/** Creates a client with the user's settings for one connection. */
export type ClientFactory = (endpoint: Endpoint) => NodeRedisClient;

/**
 * The options of a client that concern its connections. Where the user gives a password, the provider is one that
 * node-redis has made of it.
 */
export function connectionOptionsOf({
  url,
  username,
  password,
  credentialsProvider,
  name,
  database,
  RESP,
  socket,
}: NodeRedisOptions): NodeRedisOptions {
  const isSecret = username !== undefined || password !== undefined || credentialsProvider === undefined;
  const who = isSecret ? { username, password } : { credentialsProvider };
  // A client has read its URL when it was created. Root nodes have not.
  return { ...(socket?.host === undefined && { url }), ...who, name, database, RESP, socket };
}

/** The subscriptions of clients whose credentials are streamed. */
const credentials = new WeakMap<NodeRedisClient, CredentialsSubscription>();

/**
 * Creates a client with the settings of the user, except for those that would hide what happened to a command. It is
 * used for one connection, and ended by {@link destroy}, also after its connection broke.
 */
export function ownClient(
  { socket, credentialsProvider }: NodeRedisOptions,
  endpoint: Endpoint,
  create: (overrides: object) => NodeRedisClient,
): NodeRedisClient {
  const subscription = isStreaming(credentialsProvider) ? new CredentialsSubscription(credentialsProvider) : undefined;
  const client = create({
    url: undefined,
    socket: { ...socket, ...endpoint, reconnectStrategy: false, socketTimeout: undefined },
    disableOfflineQueue: true,
    pingInterval: undefined,
    commandsQueueMaxLength: undefined,
    commandOptions: undefined, // a type mapping would turn answers into Buffers
    maintNotifications: 'disabled', // it moves a client to another server in the middle of its work
    clientSideCache: undefined,
    emitInvalidate: false,
    readonly: false,
    ...(subscription && { credentialsProvider: subscription.forClient }),
  });
  client.unref();
  if (subscription !== undefined) credentials.set(client, subscription);
  return client;
}

/** Whether a server has sent what is not an answer of Redis. Nothing after that on the same connection can be trusted. */
export function isUnreadable({ message }: Error): boolean {
  return message.startsWith('Unknown RESP type');
}

/** Clients that have no socket yet, and whether they are to be destroyed when they have one. */
const withoutSocket = new WeakMap<NodeRedisClient, boolean>();

/**
 * Connects. node-redis limits the time for the connection itself, but would wait forever for the replies to its first
 * commands if the network was cut.
 */
export async function connectWithin(
  client: NodeRedisClient,
  { runtime, commandTimeout }: ConnectionContext,
): Promise<void> {
  let timer: Timer | undefined;
  withoutSocket.set(client, false);
  const failed = new Promise<never>((_, reject) => {
    const giveUp = (reason: string) => {
      reject(new Error(reason));
      destroy(client);
    };
    client.on('connect', () => {
      const isOver = withoutSocket.get(client);
      withoutSocket.delete(client);
      if (isOver) return giveUp('the connection was closed');
      const reason = `no answer within ${commandTimeout} ms to the first commands of a connection`;
      timer = runtime.timer(commandTimeout, () => giveUp(reason));
    });
  });
  try {
    await Promise.race([client.connect(), failed]);
  } finally {
    withoutSocket.delete(client);
    timer?.cancel();
  }
}

/**
 * Ends a client permanently, also one whose connection broke. If the client has no socket yet, `destroy()` alone is not
 * enough: node-redis would still open one.
 */
export function destroy(client: NodeRedisClient): void {
  credentials.get(client)?.end();
  if (withoutSocket.has(client)) {
    withoutSocket.set(client, true);
    return;
  }
  try {
    client.destroy();
  } catch {
    // it has ended already
  }
}
