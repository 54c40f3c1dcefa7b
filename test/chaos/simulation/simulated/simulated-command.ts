import type { SentCommand } from '../../../../lib/backends/redis/links/link.js';
import type { Runtime } from '../../../../lib/backends/runtime.js';
import type { CommandTrace } from './link-trace.js';
import { ReplyError, type SimulatedConnection } from './simulated-connection.js';

/** A command, with what the client library knows about it. */
export class SimulatedCommand implements SentCommand {
  readonly reply: Promise<unknown>;
  /** The connection on which it was written last. */
  socket: SimulatedConnection | undefined;
  resent = false;
  writtenAt = 0;
  /** Its caller needs no reply any more. */
  abandoned = false;
  settled = false;
  private arrivalsBefore = 0;
  private resolve!: (reply: unknown) => void;
  private reject!: (error: Error) => void;

  constructor(
    readonly name: string,
    readonly args: readonly string[],
    private readonly runtime: Runtime,
    readonly trace?: CommandTrace,
  ) {
    this.reply = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.reply.catch(() => {});
  }

  get idleSinceWrite(): number | undefined {
    const { socket } = this;
    if (socket === undefined || socket.gone || socket.arrivals !== this.arrivalsBefore) return undefined;
    return this.runtime.monotonic() - this.writtenAt;
  }

  get isLost(): boolean {
    return this.socket?.gone === true;
  }

  isAnswer(error: unknown): boolean {
    return error instanceof ReplyError;
  }

  abandon(): void {
    this.abandoned = true;
  }

  destroySocket(reason: Error): void {
    this.socket?.break(reason);
  }

  writtenOn(connection: SimulatedConnection): void {
    if (this.socket?.gone) this.resent = true;
    this.socket = connection;
    this.writtenAt = this.runtime.monotonic();
    this.arrivalsBefore = connection.arrivals;
  }

  answered(reply: unknown): void {
    this.settled = true;
    if (reply instanceof ReplyError) this.reject(reply);
    else this.resolve(reply);
  }

  failed(error: Error): void {
    this.settled = true;
    this.reject(error);
  }
}
