import type { SentCommand } from '../link.js';
import type { Endpoint, NodeRedisClient, QueueSignal } from './node-redis-client.js';

/** One connection: a client that is used once. It is also what identifies the connection. */
export interface Connection {
  readonly client: NodeRedisClient;
  /** Where it leads. */
  readonly endpoint: Endpoint;
  /** How many replies have arrived. */
  replies: number;
  /** It has ended. */
  gone: boolean;
  destroy(reason: Error): void;
}

/**
 * A command for node-redis. Its queue takes an AbortSignal, from which it removes its listener at the moment when it
 * writes the command: so this object is the signal, and knows when that was. An abort before that moment takes the
 * command out of the queue. Later it has no effect.
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

  /** Sends it through the client of a connection. Its answer settles `reply`, unless `redirect` takes it. */
  sendOn(connection: Connection, redirect?: (error: Error) => boolean): void {
    if (this.aborted) return;
    // A second time only where a node has redirected it: there it was not executed.
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

  /** Called by the queue of node-redis when it writes the command, and when it gives the command up. */
  removeEventListener(): void {
    this.onAbort = undefined;
    if (this.aborted || this.wasWritten) return;
    this.wasWritten = true;
    this.writtenAt = performance.now();
    this.repliesBefore = this.connection?.replies ?? 0;
  }
}

/** An error that the server has answered, under the name by which the backend knows it; undefined for all others. */
export function asReplyError(error: unknown): Error | undefined {
  if (!(error instanceof Error) || !isErrorReply(error)) return undefined;
  const answer = new Error(error.message);
  answer.name = 'ReplyError';
  return answer;
}

/**
 * The server's answer to a handshake that no repetition changes: a wrong password, a database that does not exist.
 * Undefined: another error.
 */
export function refusalOf(error: unknown): Error | undefined {
  const isAnswer = error instanceof Error && error.name === 'ReplyError';
  const answer = isAnswer ? error : asReplyError(error);
  return answer !== undefined && /^(ERR|NOPERM|WRONGPASS|NOAUTH)\b/.test(answer.message) ? answer : undefined;
}

/** By the name of its class: the application's copy of node-redis is not known here. */
function isErrorReply(error: Error): boolean {
  for (let type = Object.getPrototypeOf(error); type !== null; type = Object.getPrototypeOf(type))
    if (type.constructor?.name === 'ErrorReply') return true;
  return false;
}
