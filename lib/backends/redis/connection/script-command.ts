import { Command } from 'ioredis';
import type { Client } from './client-source.js';

/** As much as is needed of a `net.Socket`. */
interface Socket {
  readonly destroyed: boolean;
  readonly bytesRead: number;
  destroy(error: Error): void;
}

/**
 * A command that knows how often it went out. ioredis sends commands again whose reply was lost with the connection, and a
 * cluster client also when it was redirected.
 */
export class ScriptCommand extends Command {
  /** Where it was written last; undefined: it never left this process. */
  socket: Socket | undefined;
  /** The connection broke after it was written, and it was written again: it may have been executed twice. */
  resent = false;
  /** When it was written last, on the monotonic clock. */
  writtenAt = 0;
  /** Bytes that had come by then. */
  private readBefore = 0;

  constructor(name: string, args: string[]) {
    super(name, [], { replyEncoding: 'utf8' });
    this.args = args; // strings already: ioredis would copy and look through the hundreds that a batch has
  }

  /** ioredis asks for the bytes each time that it writes them to a socket. */
  override toWritable(socket: Socket): string | Buffer {
    if (this.socket?.destroyed) this.resent = true;
    this.socket = socket;
    this.writtenAt = performance.now();
    this.readBefore = socket.bytesRead;
    return super.toWritable(socket);
  }

  /** ioredis 6 calls it; ioredis 5, whose commands lack it, may be the copy that we were loaded with. */
  override setReplyContext(context: Parameters<Command['setReplyContext']>[0]): void {
    super.setReplyContext?.(context);
  }

  /** Fails at TRYAGAIN, where a cluster client would wait and repeat the whole: its parts alone may be served. Before it is sent. */
  failOnTryAgain(): void {
    const settle = this.reject;
    let next = settle;
    Object.defineProperty(this, 'reject', {
      get: () => {
        const current = next;
        return (error: Error) => (error.message.startsWith('TRYAGAIN') ? settle(error) : current(error));
      },
      // The cluster client puts its own function here, which calls the one that it found.
      set: (replacement: typeof settle) => {
        next = replacement;
      },
    });
  }

  /** For how many ms nothing at all has come on its connection since it was written; undefined: something has, or the connection is gone. */
  get silence(): number | undefined {
    const { socket } = this;
    if (socket === undefined || socket.destroyed || socket.bytesRead !== this.readBefore) return undefined;
    return performance.now() - this.writtenAt;
  }

  /** Ends the connection that it was written to: what has no answer is sent again on a new one. */
  hangUp(error: Error): void {
    this.socket?.destroy(error);
  }

  /**
   * Nobody waits for its answer any more. If it still stands in a queue of ioredis, waiting for a connection, it must not be
   * executed some day: an acquisition would hold a lock for nobody. So what goes out in its place, as one reply is expected for it, is a PING.
   */
  abandon(): void {
    this.name = 'ping';
    this.args = [];
  }
}

/** Sends a command; never throws. */
export function sendOn(client: Client, command: ScriptCommand): Promise<unknown> {
  try {
    const sent = client.sendCommand(command);
    // With tracing, ioredis 6 answers with a promise of its own, which nobody else would listen to.
    if (sent !== command.promise && sent instanceof Promise) sent.catch(() => {});
  } catch (error) {
    command.reject(error as Error);
  }
  return command.promise;
}
