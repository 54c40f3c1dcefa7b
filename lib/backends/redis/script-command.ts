import { Command } from 'ioredis';

type Socket = { readonly destroyed?: boolean };

/**
 * A command that knows how often it went out. ioredis sends commands again whose reply was lost with the connection, and a
 * cluster client also when it was redirected.
 */
export class ScriptCommand extends Command {
  /** Where it was written last; undefined: it never left this process. */
  socket: Socket | undefined;
  /** The connection broke after it was written, and it was written again: it may have been executed twice. */
  resent = false;

  constructor(name: string, args: string[]) {
    super(name, args, { replyEncoding: 'utf8' });
  }

  /** ioredis asks for the bytes each time that it writes them to a socket. */
  override toWritable(socket: Socket): string | Buffer {
    if (this.socket?.destroyed) this.resent = true;
    this.socket = socket;
    return super.toWritable(socket);
  }

  /** ioredis 6 calls it; ioredis 5, whose commands lack it, may be the copy that we were loaded with. */
  override setReplyContext(context: Parameters<Command['setReplyContext']>[0]): void {
    super.setReplyContext?.(context);
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
