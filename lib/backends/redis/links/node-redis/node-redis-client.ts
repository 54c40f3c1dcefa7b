import type { Timer } from '../../../runtime.js';
import type { ConnectionContext } from '../connection-context.js';

// What this library uses of node-redis (the package `redis` or `@redis/client`, 5 and 6), by its structure: which of
// them is installed is the application's affair.

/** Options of one client, as far as they matter here. */
export interface NodeRedisOptions {
  readonly url?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
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
  readonly database?: number;
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

/** Settings of every connection of ours, whatever the user's client has. */
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

/** Where nodes are for this process, by the address that the servers know: behind NAT. */
export type NodeAddressMap = Readonly<Record<string, Endpoint>> | ((address: string) => Endpoint | undefined);

export function translated(endpoint: Endpoint, map: NodeAddressMap | undefined): Endpoint {
  const address = endpointText(endpoint);
  return (typeof map === 'function' ? map(address) : map?.[address]) ?? endpoint;
}

/** Makes clients with a user's settings, for one connection each. */
export type ClientFactory = (endpoint: Endpoint) => NodeRedisClient;

/**
 * What our clients change of the user's settings. A client is used for one connection: what it would do after that,
 * such as to connect again and to send commands from its queue then, would hide what became of a command.
 */
export function ownOverrides(socket: NodeRedisOptions['socket'], endpoint: Endpoint): object {
  return {
    url: undefined,
    socket: { ...socket, ...endpoint, reconnectStrategy: false, socketTimeout: undefined },
    disableOfflineQueue: true,
    pingInterval: undefined,
    commandsQueueMaxLength: undefined,
    maintNotifications: 'disabled', // it moves a client to another server in the middle of its work
    clientSideCache: undefined,
    emitInvalidate: false,
    readonly: false,
  };
}

/** Clients that have no socket yet, and whether they are to be destroyed when they have one. */
const withoutSocket = new WeakMap<NodeRedisClient, boolean>();

/**
 * Connects. node-redis limits the time for the connection itself, but would wait for ever for the answers to its first
 * commands, which a network that was cut does not bring.
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
 * Ends a client permanently. If the client has no socket yet, `destroy()` alone is not enough: node-redis would still
 * open one.
 */
export function destroy(client: NodeRedisClient): void {
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
