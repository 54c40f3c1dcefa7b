import type { SentCommand } from '../link.js';
import type { Endpoint, NodeRedisClient, QueueSignal } from './node-redis-client.js';

/** One connection, with a client that is used once. The object identifies the connection. */
export interface Connection {
  readonly client: NodeRedisClient;
  /** The server of the connection. */
  readonly endpoint: Endpoint;
  /** How many replies have arrived. */
  replies: number;
  /** It has ended. */
  gone: boolean;
  destroy(reason: Error): void;
}

/**
 * A command for node-redis. The queue of node-redis accepts an AbortSignal, and removes its listener from the signal
 * when it writes the command. This object is that signal, so it knows when the command was written. An abort before
 * that moment removes the command from the queue. Later it has no effect.
 */
export class NodeRedisCommand implements SentCommand, QueueSignal {
  readonly reply: Promise<unknown>;
  resent = false;
  writtenAt = 0;
  aborted = false;
  private connection: Connection | undefined;
  private wasWritten = false;
  private repliesBefore = 0;
  private onAbort: (() => void) | undefined;
  private resolve!: (reply: unknown) => void;
  private reject!: (error: unknown) => void;

  constructor(private readonly words: readonly string[]) {
    this.reply = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  get socket(): object | undefined {
    return this.wasWritten ? this.connection : undefined;
  }

  get idleSinceWrite(): number | undefined {
    const { connection } = this;
    if (!this.wasWritten || connection === undefined || connection.gone) return undefined;
    return connection.replies === this.repliesBefore ? performance.now() - this.writtenAt : undefined;
  }

  get isLost(): boolean {
    return this.wasWritten && this.connection?.gone === true;
  }

  isAnswer(error: unknown): boolean {
    return error instanceof Error && error.name === 'ReplyError';
  }

  abandon(): void {
    this.aborted = true;
    this.onAbort?.();
  }

  destroySocket(reason: Error): void {
    this.connection?.destroy(reason);
  }

  /** Sends it through the client of a connection. The answer settles `reply`, unless `redirect` handles it. */
  sendOn(connection: Connection, redirect?: (error: Error) => boolean): void {
    if (this.aborted) return;
    // It is sent a second time only if a node has redirected it, because it was not executed there.
    this.connection = connection;
    this.wasWritten = false;
    connection.client.sendCommand(this.words, { abortSignal: this, timeout: 0 }).then(
      (reply) => {
        connection.replies++;
        this.resolve(reply);
      },
      (error: unknown) => {
        const answer = asReplyError(error);
        if (answer === undefined) return this.reject(error);
        connection.replies++;
        if (redirect === undefined || this.aborted || !redirect(answer)) this.reject(answer);
      },
    );
  }

  fail(error: unknown): void {
    this.reject(error);
  }

  /** Called by the queue of node-redis. */
  addEventListener(_type: 'abort', listener: () => void): void {
    this.onAbort = listener;
  }

  /** Called by the queue of node-redis when it writes or drops the command. */
  removeEventListener(): void {
    this.onAbort = undefined;
    if (this.aborted || this.wasWritten) return;
    this.wasWritten = true;
    this.writtenAt = performance.now();
    this.repliesBefore = this.connection?.replies ?? 0;
  }
}

/** Converts an error reply of the server into a ReplyError, which the backend expects. Undefined for other errors. */
export function asReplyError(error: unknown): Error | undefined {
  if (!(error instanceof Error) || !isErrorReply(error)) return undefined;
  const answer = new Error(error.message);
  answer.name = 'ReplyError';
  return answer;
}

/**
 * The server's lasting refusal of a handshake, such as a wrong password or a missing database.
 * Undefined for other errors.
 */
export function refusalOf(error: unknown): Error | undefined {
  const isAnswer = error instanceof Error && error.name === 'ReplyError';
  const answer = isAnswer ? error : asReplyError(error);
  return answer !== undefined && /^(ERR|NOPERM|WRONGPASS|NOAUTH)\b/.test(answer.message) ? answer : undefined;
}

/** Compares the name of the class, because the application's copy of node-redis is not known here. */
function isErrorReply(error: Error): boolean {
  for (let type = Object.getPrototypeOf(error); type !== null; type = Object.getPrototypeOf(type))
    if (type.constructor?.name === 'ErrorReply') return true;
  return false;
}
