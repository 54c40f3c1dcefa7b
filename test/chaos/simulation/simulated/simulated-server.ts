import {
  InProcessServer,
  type InProcessServerOptions,
  type TranslatedScripts,
} from '../../../../lib/backends/redis/in-process/in-process-server.js';
import { type Reply, redisError } from '../../../../lib/backends/redis/in-process/redis-error.js';
import { TRANSLATED_SCRIPTS } from '../../../../lib/backends/redis/in-process/translated-scripts.generated.js';
import type { ChannelKind } from '../../../../lib/backends/redis/links/link.js';
import { scripts } from '../../../../lib/backends/redis/scripts.js';
import { copyKeys } from './copy-keys.js';
import type { VirtualTime } from './virtual-time.js';

const SLOTS = 16_384;
const TODAY = Date.parse('2025-01-01T00:00:00Z');

const SHA1_OF = new Map(Object.values(scripts).map(({ source, sha1 }) => [source, sha1]));

/** A connection, as the server sees it. */
export interface ServerConnection {
  /** The server has closed it. */
  closedByServer(): void;
}

/** Is notified of what happens on a server. */
export interface ServerTrace {
  /** It has published a message. */
  published(channel: string, text: string): void;
  /** All data is lost, or only what was written lately. */
  dataLost(what: 'all' | 'latest'): void;
}

/**
 * A Redis with its own clock, in virtual time. It executes one command after another. It can stand still, stop and
 * start again, lose its data, forget its scripts, and be replaced by a replica that lags behind.
 */
export class SimulatedServer {
  /** Another one after each start, with other connections. */
  redis: InProcessServer;
  trace: ServerTrace | undefined;
  /** Called with what it publishes, and with how many it has reached. */
  onPublish: (channel: string, text: string, count: number) => void = () => {};
  /** Its clock has been set. */
  clockWasSet = false;
  private readonly connections = new Set<ServerConnection>();
  /** The digests of the scripts that it has read since it started. */
  private readonly known = new Set<string>();
  private starts = 0;
  private frozenUntil = 0;
  private downUntil = 0;
  /** The latest time that its clock had shown before it was set. */
  private latest = 0;

  /** @param rate how fast its clock runs */
  constructor(
    private readonly time: VirtualTime,
    private readonly rate: number,
    private ahead = 0,
    readonly name = 'server',
    private readonly scripts: TranslatedScripts = TRANSLATED_SCRIPTS,
  ) {
    this.redis = this.start();
  }

  /** The wall clock, by which leases and tokens are measured. */
  wall = (): number => TODAY + this.time.now * this.rate + this.ahead;

  /** By how many milliseconds its clock is behind the latest time that it has shown. */
  get behind(): number {
    return Math.max(0, this.latest - this.wall());
  }

  get isDown(): boolean {
    return this.time.now < this.downUntil;
  }

  /** When it will process what arrives now. */
  get attentiveAt(): number {
    return Math.max(this.time.now, this.frozenUntil);
  }

  connected(connection: ServerConnection): void {
    this.connections.add(connection);
  }

  disconnected(connection: ServerConnection): void {
    this.connections.delete(connection);
  }

  /**
   * Executes a command. Like a Redis that has just started, it knows no scripts.
   *
   * @throws LuaError with the error reply
   */
  execute(name: string, args: readonly string[]): Reply {
    return this.run(name.toUpperCase(), args);
  }

  /** Stops the server for a while. Connections are kept. */
  freeze(duration: number): void {
    this.frozenUntil = Math.max(this.frozenUntil, this.time.now + duration);
  }

  restart(duration: number, keepsData: boolean): void {
    const former = this.redis;
    this.stop(duration);
    this.redis = this.start();
    if (keepsData) copyKeys(former, this.redis);
    else this.trace?.dataLost('all');
  }

  /** It stops in this many milliseconds. A replica that has what is written by now takes its place after a while. */
  failOver(lag: number, duration: number): void {
    const replica = this.start();
    copyKeys(this.redis, replica);
    this.time.after(lag, () => {
      this.stop(duration);
      this.redis = replica;
      this.trace?.dataLost('latest');
    });
  }

  /** FLUSHALL. */
  flush(): void {
    this.redis.keys.clear();
    this.trace?.dataLost('all');
  }

  /** As if all scripts had been used before. */
  learnScripts(): void {
    for (const { sha1 } of Object.values(scripts)) this.known.add(sha1);
  }

  /** SCRIPT FLUSH. */
  forgetScripts(): void {
    this.known.clear();
  }

  setClock(by: number): void {
    this.latest = Math.max(this.latest, this.wall());
    this.ahead += by;
    this.clockWasSet = true;
  }

  private run(name: string, args: readonly string[]): Reply {
    if (name === 'EVALSHA' && !this.known.has(args[0]))
      throw redisError('NOSCRIPT No matching script. Please use EVAL.');
    if (name !== 'EVAL') return this.redis.execute(name, args);
    const [source, ...rest] = args;
    const sha1 = SHA1_OF.get(source);
    if (sha1 === undefined) throw new Error(`a script that this library does not have: ${source.slice(0, 100)}`);
    this.known.add(sha1);
    return this.redis.execute('EVALSHA', [sha1, ...rest]);
  }

  private start(): InProcessServer {
    return new PublishingServer(this, {
      scripts: this.scripts,
      micros: () => this.wall() * 1_000,
      address: `${this.name}-${++this.starts}`,
    });
  }

  private stop(duration: number): void {
    this.downUntil = Math.max(this.downUntil, this.time.now + duration);
    this.known.clear();
    for (const connection of [...this.connections]) connection.closedByServer();
    this.connections.clear();
  }
}

class PublishingServer extends InProcessServer {
  private isPublishing = false;

  constructor(
    private readonly server: SimulatedServer,
    options: InProcessServerOptions,
  ) {
    super(options);
  }

  override publish(kind: Exclude<ChannelKind, 'pattern'>, channel: string, text: string): number {
    const count = super.publish(kind, channel, text);
    // Somebody else may publish something at once.
    const { isPublishing } = this;
    this.isPublishing = true;
    if (!isPublishing) this.server.trace?.published(channel, text);
    this.server.onPublish(channel, text, count);
    this.isPublishing = isPublishing;
    return count;
  }
}

/** Of the nodes of a cluster, the one that has a slot, or the only server. All nodes have the same number of slots. */
export function nodeOfSlot(nodes: readonly SimulatedServer[], slot: number): SimulatedServer {
  return nodes[Math.floor((slot * nodes.length) / SLOTS)];
}
