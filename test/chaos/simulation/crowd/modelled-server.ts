import { MemoryStore } from '../../../../lib/backends/redis/in-process/memory-store.js';
import type { VirtualTime } from '../simulated/virtual-time.js';

const TODAY = Date.parse('2025-01-01T00:00:00Z');

/** How long things take, in milliseconds. */
export interface Costs {
  /** The way from a process to the server, or back. */
  readonly latency: number;
  /** The server reads a script call and executes it. A PING is as cheap as a write. */
  readonly command: number;
  /** The same for a call by which a waiting process keeps or gives up its place in the line. */
  readonly place: number;
  /** The same for a subscription to a channel, or its end. */
  readonly subscription: number;
  /** The server writes an answer or a published message to the socket of one connection. */
  readonly write: number;
  /** A process reads a message from its socket and decides what to do. */
  readonly message: number;
  /**
   * A process reads a script's answer from its socket, and does what follows. The answer to a PING is as cheap as a
   * message.
   */
  readonly answer: number;
}

/** Identifies one connection. */
export type Socket = object;

/**
 * A Redis that executes one command at a time: the real memory backend behind a model of the event loop of redis-server
 * 7.0. A turn of the loop executes all commands that have arrived, and then writes to each connection for which there
 * is data, the last one first. Commands that arrive meanwhile wait for the next turn. So a PUBLISH delays everybody for
 * as long as the server writes to its listeners.
 */
export class ModelledServer {
  readonly store: MemoryStore;
  /** Messages written so far. */
  messages = 0;
  /** Milliseconds of work so far. */
  worked = 0;
  private readonly commands = new Map<string, number>();
  private arrived: { readonly kind: string; readonly execute: () => void }[] = [];
  private readonly outgoing = new Map<Socket, (() => void)[]>();
  private working = false;

  constructor(
    private readonly time: VirtualTime,
    readonly costs: Costs,
  ) {
    const wall = () => TODAY + time.now;
    this.store = new MemoryStore({ monotonic: wall, wall });
  }

  /** Commands of these kinds that were executed so far. */
  count(...kinds: readonly string[]): number {
    return kinds.reduce((sum, kind) => sum + (this.commands.get(kind) ?? 0), 0);
  }

  /** Commands of other kinds that were executed so far. */
  countExcept(...kinds: readonly string[]): number {
    return this.count(...this.commands.keys()) - this.count(...kinds);
  }

  /** Called when a command has arrived. Its answer is passed to {@link write}. */
  receive(kind: string, execute: () => void): void {
    this.arrived.push({ kind, execute });
    if (!this.working) this.turn();
  }

  /** Sends data to a connection. It arrives after the server has written it. */
  write(socket: Socket, arrive: () => void): void {
    const waiting = this.outgoing.get(socket);
    if (waiting === undefined) this.outgoing.set(socket, [arrive]);
    else waiting.push(arrive);
  }

  private turn(): void {
    this.working = true;
    const commands = this.arrived;
    this.arrived = [];
    let cost = 0;
    for (const { kind, execute } of commands) {
      this.commands.set(kind, this.count(kind) + 1);
      cost += this.costOf(kind);
      execute();
    }
    // By the next event, their promises have settled.
    this.time.after(0, () => this.answer(cost));
  }

  private costOf(kind: string): number {
    const { command, place, subscription, write } = this.costs;
    if (kind === 'ping') return write;
    if (kind === 'places') return place;
    return kind === 'subscribe' ? subscription : command;
  }

  private answer(executed: number): void {
    const { time, costs, outgoing } = this;
    let now = time.now + executed;
    for (const things of [...outgoing.values()].reverse()) {
      now += costs.write;
      for (const arrive of things) time.at(now + costs.latency, arrive);
    }
    outgoing.clear();
    this.worked += now - time.now;
    time.at(now, () => {
      this.working = false;
      if (this.arrived.length > 0) this.turn();
    });
  }
}
