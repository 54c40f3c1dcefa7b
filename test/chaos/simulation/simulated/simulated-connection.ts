import { toText } from '../../../../lib/backends/redis/in-process/bytes.js';
import { LuaError } from '../../../../lib/backends/redis/in-process/lua-table.js';
import type { Reply } from '../../../../lib/backends/redis/in-process/redis-error.js';
import type { Cable } from './cable.js';
import type { ServerConnection, SimulatedServer } from './simulated-server.js';
import { Stream } from './stream.js';

/** A client notices within this many milliseconds that its connection was reset. */
const NOTICED_WITHIN = 5;

/** An error reply, as client libraries have it. */
export class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

/** What happens to a connection after a request. */
export interface Mishap {
  /** The request and what follows do not arrive. */
  readonly neverArrives?: boolean;
  /** The request and what follows arrive this many milliseconds later. */
  readonly arrivesLater?: number;
  /** The request is executed, but its reply and what follows do not arrive. */
  readonly unanswered?: boolean;
  /** The reply and what follows arrive this many milliseconds later. */
  readonly answeredLater?: number;
  /** After this many milliseconds, the client is told that the connection broke. Left out: it is not told. */
  readonly resetAfter?: number | undefined;
}

/**
 * A TCP connection between a process and a server. In each direction, everything arrives in order. When it ends, what
 * was sent before may still arrive, also after the client has connected anew.
 */
export class SimulatedConnection implements ServerConnection {
  /** How often something has arrived at the client. */
  arrivals = 0;
  /** The client knows that it has ended. */
  gone = false;
  private readonly up: Stream;
  private readonly down: Stream;
  private closedAtServer = false;
  private readonly endings: (() => void)[] = [];

  /** @param lost called once, when the client is told that the connection has ended, unless it ended it */
  constructor(
    private readonly cable: Cable,
    readonly server: SimulatedServer,
    private readonly lost: (error: Error) => void,
  ) {
    const { time, network } = cable;
    this.up = new Stream(time, network, () => Math.max(cable.heldUntil, server.attentiveAt));
    this.down = new Stream(time, network, () => cable.heldUntil);
    cable.connections.add(this);
  }

  /** One of its directions leads nowhere. */
  get isHalfOpen(): boolean {
    return this.up.isDead || this.down.isDead;
  }

  /** Connects, and greets the server. `ready` is called when it has answered. */
  open(ready: () => void): void {
    const { time, network, process, commandTimeout } = this.cable;
    const reach = () => {
      if (this.gone) return;
      if (this.cable.heldUntil > time.now) return time.at(this.cable.heldUntil, reach);
      if (this.server.isDown) return this.tell(new Error('connect ECONNREFUSED'));
      this.server.connected(this);
      const timer = process.unobserved.timer(commandTimeout, () => this.break(new Error('no answer to the greeting')));
      this.request(
        () => 'OK',
        () => {
          timer.cancel();
          ready();
        },
      );
    };
    // The operating system of the server answers, although the server may stand still.
    time.after(network.delay() + network.delay(), reach);
  }

  /**
   * @param answered receives the decoded reply, or a {@link ReplyError}
   * @param vanished called if it does not arrive
   */
  request(
    execute: () => Reply,
    answered: (reply: unknown) => void,
    mishap: Mishap = {},
    vanished: () => void = () => {},
  ): void {
    const { up, down, cable } = this;
    if (mishap.neverArrives) up.isDead = true;
    if (mishap.arrivesLater !== undefined) up.stall(mishap.arrivesLater);
    up.send(() => {
      if (this.closedAtServer) return vanished();
      const reply = replyOf(execute);
      if (mishap.unanswered && !cable.network.calm) down.isDead = true;
      if (mishap.answeredLater !== undefined) down.stall(mishap.answeredLater);
      this.push(() => answered(reply));
    }, vanished);
    if (mishap.resetAfter !== undefined) cable.time.after(mishap.resetAfter, () => this.tell(new Error('ECONNRESET')));
  }

  /** Sends something to the client, unasked. */
  push(arrived: () => void): void {
    this.down.send(() =>
      this.cable.process.receive(0, () => {
        if (this.gone) return;
        this.arrivals++;
        arrived();
      }),
    );
  }

  /** Delays what the server sends from now on. */
  delay(duration: number): void {
    this.down.stall(duration);
  }

  /** From now on, the client receives nothing. */
  deafen(): void {
    this.down.isDead = true;
  }

  /** From now on, nothing arrives in either direction. */
  silence(): void {
    this.up.isDead = this.down.isDead = true;
  }

  /** Called when the connection has ended at the server. */
  whenClosedAtServer(callback: () => void): void {
    this.endings.push(callback);
  }

  /** The network ends it. What is on its way to the server may still arrive. */
  reset(): void {
    const { network } = this.cable;
    if (network.within(1) < 0.5) this.up.isDead = true;
    this.down.isDead = true;
    this.tell(new Error('ECONNRESET'), network.within(NOTICED_WITHIN));
  }

  /** The client ends it. The server notices that after all that was sent before. */
  destroy(_reason: Error): void {
    if (this.gone) return;
    this.gone = true;
    this.cable.connections.delete(this);
    this.down.isDead = true;
    // A server that can no longer be reached notices it by its own time limits.
    if (this.up.isDead) this.cable.time.after(this.cable.network.within(500), () => this.closeAtServer());
    else this.up.send(() => this.closeAtServer());
  }

  /** The client library ends it, because it is of no use. */
  break(reason: Error): void {
    if (this.gone) return;
    this.destroy(reason);
    this.lost(reason);
  }

  closedByServer(): void {
    this.up.isDead = true;
    this.down.isDead = true;
    this.closeAtServer();
    this.tell(new Error('the server closed the connection'), this.cable.network.within(NOTICED_WITHIN));
  }

  /** The client is told after a while, as soon as it can be reached, and if it is not busy. */
  private tell(error: Error, delay = 0): void {
    const { time, process, heldUntil } = this.cable;
    if (heldUntil > time.now + delay) return time.at(heldUntil, () => this.tell(error));
    process.receive(delay, () => this.break(error));
  }

  private closeAtServer(): void {
    if (this.closedAtServer) return;
    this.closedAtServer = true;
    this.server.disconnected(this);
    for (const callback of this.endings) callback();
  }
}

function replyOf(execute: () => Reply): unknown {
  try {
    return toText(execute());
  } catch (error) {
    if (error instanceof LuaError) return new ReplyError(error.message);
    throw error;
  }
}
