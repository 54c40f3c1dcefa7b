import { toBytes } from '../../../../lib/backends/redis/in-process/bytes.js';
import type { Link } from '../../../../lib/backends/redis/links/link.js';
import type { TopologyEvents } from '../../../../lib/backends/redis/links/topology.js';
import type { Timer } from '../../../../lib/backends/runtime.js';
import type { Cable } from './cable.js';
import type { Fate } from './network-conditions.js';
import { SimulatedCommand } from './simulated-command.js';
import { type Mishap, SimulatedConnection } from './simulated-connection.js';
import type { SimulatedServer } from './simulated-server.js';

/** The pauses between attempts to connect, in milliseconds, as with both client libraries. */
const FIRST_RETRY_DELAY = 50;
const LONGEST_RETRY_DELAY = 1_000;

/** The client library whose behaviour is imitated. */
export type ClientLibrary = 'ioredis' | 'node-redis';

/**
 * The commands of one process for one server, on one connection at a time. Without one, commands wait. When a connection
 * breaks, ioredis sends the commands without an answer again on the next one, and node-redis fails them.
 */
export class SimulatedLink implements Link {
  private connection: SimulatedConnection | undefined;
  /** Whether the server has answered on the connection. */
  private isReady = false;
  private waiting: SimulatedCommand[] = [];
  private written: SimulatedCommand[] = [];
  private lastError: Error | undefined;
  private attempts = 0;
  private retry: Timer | undefined;
  private closed = false;
  private events: TopologyEvents = { ready: () => {}, failed: () => {} };

  constructor(
    private readonly cable: Cable,
    readonly server: SimulatedServer,
    private readonly library: ClientLibrary,
  ) {}

  get address(): string {
    return this.server.name;
  }

  /** The connection that commands are written to now. */
  get socket(): object | undefined {
    return this.isReady ? this.connection : undefined;
  }

  get connectionError(): Error | undefined {
    return this.isReady ? undefined : (this.lastError ?? new Error('not connected yet'));
  }

  open(events: TopologyEvents): void {
    this.events = events;
    this.connect();
  }

  send(name: string, args: readonly string[]): SimulatedCommand {
    const { process } = this.cable;
    const trace = this.cable.trace?.sent(process.name, this.server, name, args);
    const command = new SimulatedCommand(name, args, process, trace);
    if (this.closed) command.failed(new Error('the connection was closed'));
    else if (this.isReady) this.write(command, this.cable.network.fate());
    else this.waiting.push(command);
    return command;
  }

  leave(): void {
    this.connection?.break(new Error('the server is not the master any more'));
  }

  close(): void {
    this.closed = true;
    this.retry?.cancel();
    const ended = new Error('the connection was closed');
    this.connection?.destroy(ended);
    this.isReady = false;
    for (const command of [...this.written, ...this.waiting]) command.failed(ended);
    this.written = this.waiting = [];
  }

  private connect(): void {
    const connection = new SimulatedConnection(this.cable, this.server, (error) => this.broke(connection, error));
    this.connection = connection;
    connection.open(() => {
      this.isReady = true;
      this.attempts = 0;
      this.lastError = undefined;
      this.events.ready();
      const { waiting } = this;
      this.waiting = [];
      for (const command of waiting) this.write(command, 'answered');
    });
  }

  private write(command: SimulatedCommand, fate: Fate): void {
    const { connection } = this;
    if (connection === undefined || connection.gone) return void this.waiting.push(command);
    if (fate === 'refused') {
      command.failed(new Error('Connection is closed.'));
      return connection.break(new Error('ECONNRESET'));
    }
    // A command without a caller is sent as a PING by ioredis, and not at all by node-redis.
    if (command.abandoned && this.library === 'node-redis') return;
    const [name, args] = command.abandoned ? ['ping', []] : [command.name, command.args.map(toBytes)];
    command.writtenOn(connection);
    this.written.push(command);
    const trace = command.abandoned ? undefined : command.trace?.written();
    const run = () => this.server.execute(name, args);
    connection.request(
      () => (trace === undefined ? run() : trace.execute(run)),
      (reply) => {
        this.written = this.written.filter((other) => other !== command);
        trace?.answered();
        command.answered(reply);
      },
      this.mishap(fate),
      () => trace?.lost(),
    );
  }

  /** What a fate means for the connection. */
  private mishap(fate: Fate): Mishap {
    const { network, commandTimeout } = this.cable;
    const within = (most: number) => network.within(most);
    // Some clients are told at once that the connection broke. Others notice nothing until a time-out.
    const breakOff = () => {
      const resetAfter = within(2 * commandTimeout);
      return resetAfter < commandTimeout ? { resetAfter } : {};
    };
    switch (fate) {
      case 'lost':
        return { neverArrives: true, ...breakOff() };
      case 'unanswered':
        return { unanswered: true, ...breakOff() };
      case 'resent':
        return { unanswered: true, resetAfter: within(50) };
      case 'late':
        return { arrivesLater: within(2 * commandTimeout) };
      case 'twice':
        return { arrivesLater: within(2 * commandTimeout), resetAfter: within(50) };
      case 'overtaken':
        return { arrivesLater: within(3 * commandTimeout), ...breakOff() };
      case 'answeredLate':
        return { answeredLater: within(commandTimeout) };
      default:
        return {};
    }
  }

  private broke(connection: SimulatedConnection, error: Error): void {
    if (this.connection !== connection) return;
    this.connection = undefined;
    this.isReady = false;
    this.lastError = error;
    const unanswered = this.written;
    this.written = [];
    if (this.library === 'ioredis') this.waiting.unshift(...unanswered);
    else for (const command of unanswered) command.failed(error);
    this.events.failed(error);
    if (this.closed || this.retry !== undefined) return;
    const { unobserved } = this.cable.process;
    const pause = Math.min(FIRST_RETRY_DELAY * 2 ** this.attempts++, LONGEST_RETRY_DELAY);
    this.retry = unobserved.timer(pause + unobserved.random() * 50, () => {
      this.retry = undefined;
      this.connect();
    });
  }
}
