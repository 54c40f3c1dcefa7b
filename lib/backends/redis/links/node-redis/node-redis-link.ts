import type { Timer } from '../../../runtime.js';
import { withoutSecrets } from '../../connection/redis-errors.js';
import type { ConnectionContext } from '../connection-context.js';
import type { Link, SentCommand } from '../link.js';
import {
  type ClientFactory,
  connectWithin,
  destroy,
  type Endpoint,
  isSame,
  isUnreadable,
} from './node-redis-client.js';
import { type Connection, NodeRedisCommand, refusalOf } from './sent-command.js';

/** The pauses before another attempt to connect, in milliseconds. They are the same as with ioredis. */
const FIRST_RETRY_DELAY = 50;
const LONGEST_RETRY_DELAY = 1_000;

/** What a link needs from its topology. */
export interface LinkTerms {
  /** `host:port`, or the name of the server in logs. */
  readonly address: string;
  readonly createClient: ClientFactory;
  /** The current address of the server, which changes with Sentinels. */
  readonly locate: () => Promise<Endpoint>;
  readonly context: ConnectionContext;
  ready(): void;
  /** A connection failed, and is tried again. Without secrets. */
  failed(error: Error): void;
}

/**
 * The commands for one server, through node-redis clients that are each used for one connection. When the connection
 * breaks, a new client is created, so a written command is never sent again. Without a connection, commands wait here,
 * where they can be withdrawn.
 */
export class NodeRedisLink implements Link {
  private connection: Connection | undefined;
  private readonly waiting = new Set<NodeRedisCommand>();
  private lastError: Error | undefined;
  private attempts = 0;
  private retryTimer: Timer | undefined;
  private closed = false;

  constructor(private readonly terms: LinkTerms) {}

  get address(): string {
    return this.terms.address;
  }

  get isReady(): boolean {
    return this.connection?.client.isReady === true;
  }

  /** Why there is no connection; undefined: there is one. */
  get connectionError(): Error | undefined {
    if (this.isReady) return undefined;
    return this.lastError ?? new Error('node-redis has not connected yet');
  }

  /** The connection that commands are written to now. */
  get socket(): object | undefined {
    return this.connection;
  }

  open(): void {
    this.connect();
  }

  send(name: string, args: readonly string[]): SentCommand {
    const command = new NodeRedisCommand([name].concat(args));
    this.dispatch(command);
    return command;
  }

  /** @param redirect takes errors that concern another node: see {@link NodeRedisCommand.sendOn} */
  dispatch(command: NodeRedisCommand, redirect?: (error: Error) => boolean): void {
    const { connection } = this;
    if (this.closed) return command.fail(new Error('the connection was closed'));
    if (connection?.client.isReady) return command.sendOn(connection, redirect);
    this.waiting.add(command);
    this.redirects.set(command, redirect);
  }

  private readonly redirects = new WeakMap<NodeRedisCommand, ((error: Error) => boolean) | undefined>();

  /** The server was replaced by the one at this address. */
  leaveUnlessAt(endpoint: Endpoint): void {
    const { connection } = this;
    if (connection !== undefined && !isSame(connection.endpoint, endpoint)) this.reconnect();
  }

  /** Leaves the server, and connects to its current address. */
  reconnect(): void {
    this.connection?.destroy(new Error('the server is not the master any more'));
  }

  close(): void {
    this.closed = true;
    this.retryTimer?.cancel();
    this.connection?.destroy(new Error('the connection was closed'));
    for (const command of this.waiting) command.fail(new Error('the connection was closed'));
    this.waiting.clear();
  }

  private connect(): void {
    const { terms } = this;
    terms
      .locate()
      .then((endpoint) => (this.closed ? undefined : this.connectTo(endpoint)))
      .catch((error: unknown) => this.broke(undefined, error));
  }

  private async connectTo(endpoint: Endpoint): Promise<void> {
    const client = this.terms.createClient(endpoint);
    const connection: Connection = {
      client,
      endpoint,
      replies: 0,
      gone: false,
      destroy: (reason) => {
        if (connection.gone) return;
        this.broke(connection, reason);
      },
    };
    this.connection = connection;
    // The client reports the end of its connection as an error. It is not used after that.
    client.on('error', (error: Error) => {
      if (!client.isOpen || isUnreadable(error)) this.broke(connection, error);
    });
    client.on('end', () => this.broke(connection, new Error('the connection ended')));
    await connectWithin(client, this.terms.context).catch((error: unknown) => {
      this.refused(error);
      this.broke(connection, error);
    });
    if (connection.gone) return;
    if (this.closed) return destroy(client);
    this.attempts = 0;
    this.lastError = undefined;
    this.terms.ready();
    for (const command of [...this.waiting]) {
      this.waiting.delete(command);
      command.sendOn(connection, this.redirects.get(command));
    }
  }

  /**
   * Called when the server refuses the handshake, for example because the database does not exist. Waiting for a
   * connection would not help.
   */
  private refused(error: unknown): void {
    const refusal = refusalOf(error);
    if (refusal === undefined) return;
    for (const command of this.waiting) command.fail(refusal);
    this.waiting.clear();
  }

  private broke(connection: Connection | undefined, error: unknown): void {
    if (connection?.gone || this.connection !== connection) return;
    if (connection !== undefined) {
      connection.gone = true;
      destroy(connection.client);
    }
    this.connection = undefined;
    if (this.closed) return;
    this.lastError = withoutSecrets(error);
    const { context, failed } = this.terms;
    failed(this.lastError);
    if (this.closed || this.retryTimer !== undefined) return;
    const pause = Math.min(FIRST_RETRY_DELAY * 2 ** this.attempts++, LONGEST_RETRY_DELAY);
    // Abandoned commands need no connection.
    for (const command of this.waiting) if (command.aborted) this.waiting.delete(command);
    const retry = () => {
      this.retryTimer = undefined;
      this.connect();
    };
    this.retryTimer = context.runtime.timer(pause + context.runtime.random() * 50, retry);
  }
}
