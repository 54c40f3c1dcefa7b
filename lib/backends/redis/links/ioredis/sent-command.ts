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

/** A command that ioredis sends, and what is known of it. */
export interface IoredisCommand extends SentCommand, Pick<Command, 'promise' | 'reject'> {
  /** Makes it fail on TRYAGAIN, where a cluster client would wait and repeat the whole. Call it before sending. */
  failOnTryAgain(): void;
}

export type CommandClass = new (name: string, args: readonly string[]) => IoredisCommand;

/** A class for each copy of ioredis, or of its fork, in this process: one, as a rule. */
const classes = new WeakMap<typeof Command, CommandClass>();

/**
 * Commands for a client, which know when and where they were written. ioredis sends a command again when its reply was
 * lost with the connection, and a cluster client also when it was redirected.
 */
export function commandsFor(client: Client): CommandClass {
  // The class of a cluster client does not have it; any copy's will do there.
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
    /** Where it was written last; undefined while it has not left this process. */
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
      this.args = args as string[]; // all of them strings: ioredis would copy and check the hundreds that a batch has
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

    /** Called by ioredis 6. Where this library is loaded with ioredis 5, the base class does not have it. */
    override setReplyContext(context: Parameters<Command['setReplyContext']>[0]): void {
      super.setReplyContext?.(context);
    }

    /**
     * Makes it fail on TRYAGAIN, where a cluster client would wait and repeat the whole: parts of it may be served
     * already. Call it before sending.
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

    /** Destroys the connection that it was written to: ioredis sends unanswered commands again on a new one. */
    destroySocket(error: Error): void {
      this.socket?.destroy(error);
    }

    /**
     * Turns it into a PING, because its caller has left. It may still be in a queue of ioredis, waiting for a
     * connection, and an acquisition that is executed later would take a lock for nobody. It cannot simply be removed:
     * ioredis expects one reply for it.
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
