import type { Runtime } from '../../runtime.js';
import { slotOf } from '../hash-slot.js';
import type { SentCommand } from '../links/link.js';
import type { Topology } from '../links/topology.js';
import { arrayOf, integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';
import { checkDatabaseExists } from './check-database-exists.js';
import { checkServer } from './check-server.js';
import { errorCode, messageOf } from './redis-errors.js';
import { ServerClock } from './server-clock.js';

/** An estimate that may be wrong by more than this, in milliseconds, is improved immediately. */
const ACCEPTABLE_UNCERTAINTY = 100;
const MAX_REPETITIONS = 3;

/**
 * The clocks of all servers. Each server is asked for its time before the first script runs there. At the same time, it
 * is checked that the server has the connection's database.
 */
export class ServerClocks {
  /** One for each node of a cluster. */
  private readonly clocks = new Map<string, ServerClock>();
  private readonly single = new ServerClock();
  private readonly synchronizing = new Map<string, Promise<ServerClock>>();
  private readonly pending = new Set<SentCommand>();
  /** Whether a server has answered and is usable. */
  hasAnswered = false;

  /** @param onFirstAnswer called once with the reply to INFO, when a server has answered for the first time */
  constructor(
    private readonly topology: Topology,
    private readonly runtime: Runtime,
    private readonly onFirstAnswer: (info: string) => void,
  ) {}

  /** The unanswered commands that this class has sent, to any server. */
  get pendingCommands(): Iterable<SentCommand> {
    return this.pending;
  }

  /** The clock of the server that has these keys. */
  of(keys: readonly string[]): ServerClock {
    return this.topology.isCluster ? this.ofNode(this.nodeOf(keys)) : this.single;
  }

  /** Like {@link of}, after the server was asked for its time. */
  synchronize(keys: readonly string[]): Promise<ServerClock> {
    const node = this.nodeOf(keys);
    let synchronizing = this.synchronizing.get(node);
    if (synchronizing === undefined) {
      synchronizing = this.ask(keys).finally(() => this.synchronizing.delete(node));
      this.synchronizing.set(node, synchronizing);
    }
    return synchronizing;
  }

  /** Asks again in the background. */
  refresh(keys: readonly string[]): void {
    this.synchronize(keys).catch(() => {});
  }

  /** Drops all clocks, because other servers may answer from now on. */
  forget(): void {
    this.single.forget();
    this.clocks.clear();
  }

  private async ask(keys: readonly string[]): Promise<ServerClock> {
    // It is sent together with the next command, so it costs no additional round trip.
    const information = this.hasAnswered ? undefined : this.askInfo();
    const clock = await this.measure(keys).catch(async (error: unknown) => {
      // A Sentinel knows neither SELECT nor TIME.
      if (errorCode(messageOf(error)) === 'UNKNOWN') checkServer((await information) ?? '', this.topology.description);
      throw error;
    });
    if (information !== undefined) {
      const info = await information;
      try {
        checkServer(info, this.topology.description);
      } catch (error) {
        this.forget(); // the next call asks again, and is refused as well
        throw error;
      }
      if (!this.hasAnswered) this.onFirstAnswer(info);
      this.hasAnswered = true;
    }
    return clock;
  }

  private async measure(keys: readonly string[]): Promise<ServerClock> {
    await checkDatabaseExists(this.topology, (name, args) => this.send(name, args).reply);
    let clock = await this.askTime(keys);
    // A slow answer makes the server's clock seem ahead, and would let requests be executed for too long.
    for (let n = 0; clock.uncertainty > ACCEPTABLE_UNCERTAINTY && n < MAX_REPETITIONS; n++) {
      clock = await this.askTime(keys);
    }
    return clock;
  }

  /** The server's INFO; `''` if the user may not read it. */
  private askInfo(): Promise<string> {
    return this.send('info', []).reply.then(String, () => '');
  }

  private async askTime(keys: readonly string[]): Promise<ServerClock> {
    const { description, isCluster } = this.topology;
    const [key] = keys;
    const command =
      isCluster && key !== undefined
        ? this.send('eval', [scripts['time-1'].source, '1', key], key)
        : this.send('time', []);
    const [seconds, micros] = arrayOf(await command.reply, description);
    const time = integerOf(seconds, description) * 1_000 + Math.floor(integerOf(micros, description) / 1_000);
    const clock = this.of(keys);
    clock.sample(time, command.writtenAt, this.runtime.monotonic(), command.socket);
    return clock;
  }

  private send(name: string, args: readonly string[], key?: string): SentCommand {
    const command = this.topology.send(name, args, key);
    this.pending.add(command);
    const settled = () => void this.pending.delete(command);
    command.reply.then(settled, settled);
    return command;
  }

  private nodeOf([key]: readonly string[]): string {
    const { topology } = this;
    return topology.isCluster && key !== undefined ? topology.nodeOfSlot(slotOf(key)) : '';
  }

  private ofNode(node: string): ServerClock {
    let clock = this.clocks.get(node);
    if (clock === undefined) {
      clock = new ServerClock();
      // '' stands for keys whose node is not known yet: their clock is not kept.
      if (node !== '') this.clocks.set(node, clock);
    }
    return clock;
  }
}
