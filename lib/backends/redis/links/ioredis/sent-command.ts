import type { Command } from 'ioredis';
import type { SentCommand } from '../link.js';
import { requireIoredis } from '../load-client.js';
import type { Client } from './client.js';

/** The members of `net.Socket` that are used here. */
interface Socket {
  readonly destroyed: boolean;
  readonly bytesRead: number;
  destroy(error: Error): void;
}

/** A command that ioredis sends, with its state. */
export interface IoredisCommand extends SentCommand, Pick<Command, 'promise' | 'reject'> {
  /** Makes the command fail on TRYAGAIN, which a cluster client would repeat after a pause. Call it before sending. */
  failOnTryAgain(): void;
}

export type CommandClass = new (name: string, args: readonly string[]) => IoredisCommand;

/** One class for each copy of ioredis, or of its fork, in this process. Usually there is only one. */
const classes = new WeakMap<typeof Command, CommandClass>();

/**
 * Commands for a client, which know when and where they were written. ioredis sends a command again when its reply was
 * lost with the connection, and a cluster client also when it was redirected.
 */
export function commandsFor(client: Client): CommandClass {
  // A cluster client does not have this class. The class of any copy works there.
  const own = (client.constructor as { Command?: typeof Command }).Command;
  const Base = own ?? requireIoredis().Command;
  let made = classes.get(Base);
  if (made === undefined) {
    made = extend(Base);
    classes.set(Base, made);
  }
  return made;
}

function extend(Base: typeof Command): CommandClass {
  return class IoredisCommand extends Base implements IoredisCommand {
    /** The socket to which it was last written. Undefined while it has not left this process. */
    socket: Socket | undefined;
    /** The connection broke after it was written, and it was written again: it may have been executed twice. */
    resent = false;
    /** When it was written last, on the monotonic clock. */
    writtenAt = 0;
    /** Bytes that the socket had received by then. */
    private bytesReadBefore = 0;

    /** Its name before it was abandoned. */
    private readonly asked: string;

    constructor(name: string, args: readonly string[]) {
      super(name, [], { replyEncoding: 'utf8' });
      this.asked = name;
      this.args = args as string[]; // a batch has hundreds of strings, which ioredis would copy and check
    }

    get reply(): Promise<unknown> {
      return this.promise;
    }

    isAnswer(error: unknown): boolean {
      const { command } = (error ?? {}) as { command?: { name?: string } };
      return command !== undefined && command.name === this.asked;
    }

    /** Called by ioredis each time it writes the command to a socket. */
    override toWritable(socket: Socket): string | Buffer {
      if (this.socket?.destroyed) this.resent = true;
      this.socket = socket;
      this.writtenAt = performance.now();
      this.bytesReadBefore = socket.bytesRead;
      return super.toWritable(socket);
    }

    /** Called by ioredis 6. The base class of ioredis 5 does not have it. */
    override setReplyContext(context: Parameters<Command['setReplyContext']>[0]): void {
      super.setReplyContext?.(context);
    }

    /**
     * Makes the command fail on TRYAGAIN, which a cluster client would repeat after a pause, although parts of it may
     * already have been executed. Call it before sending.
     */
    failOnTryAgain(): void {
      const original = this.reject;
      let next = original;
      Object.defineProperty(this, 'reject', {
        get: () => {
          const current = next;
          return (error: Error) => (error.message.startsWith('TRYAGAIN') ? original(error) : current(error));
        },
        // The cluster client replaces this function by its own, which calls this one.
        set: (replacement: typeof original) => {
          next = replacement;
        },
      });
    }

    get idleSinceWrite(): number | undefined {
      const { socket } = this;
      if (socket === undefined || socket.destroyed || socket.bytesRead !== this.bytesReadBefore) return undefined;
      return performance.now() - this.writtenAt;
    }

    get isLost(): boolean {
      return this.socket?.destroyed === true;
    }

    /** Destroys the connection that it was written to: ioredis sends unanswered commands again on a new one. */
    destroySocket(error: Error): void {
      this.socket?.destroy(error);
    }

    /**
     * Turns the command into a PING, because its caller has given up. It may still be in a queue of ioredis that waits
     * for a connection, and a late acquisition would leave a lock without an owner. It cannot simply be removed,
     * because ioredis expects a reply for it.
     */
    abandon(): void {
      this.name = 'ping';
      this.args = [];
    }
  };
}

/** Sends a command; never throws. */
export function sendOn(client: Client, command: IoredisCommand): IoredisCommand {
  try {
    const sent = client.sendCommand(command as unknown as Command);
    // With tracing, ioredis 6 returns another promise, whose rejection would be unhandled.
    if (sent !== command.promise && sent instanceof Promise) sent.catch(() => {});
  } catch (error) {
    command.reject(error as Error);
  }
  return command;
}
