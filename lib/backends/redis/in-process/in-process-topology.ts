import type { Runtime } from '../../runtime.js';
import type { ChannelKind, Link, SentCommand, SubscriberConnection, SubscriberEvents } from '../links/link.js';
import type { Topology, TopologyEvents } from '../links/topology.js';
import { toBytes, toText } from './bytes.js';
import type { InProcessServer, MessageListener } from './in-process-server.js';
import { LuaError } from './lua-table.js';
import type { Reply } from './redis-error.js';

/** The links to a server inside this process. Nothing is lost on the way, and nothing waits for a network. */
export class InProcessTopology implements Topology, Link {
  readonly library = 'this process';
  readonly description = 'memory';
  readonly address = 'memory';
  readonly usesTls = false;
  readonly owned = true;
  readonly isCluster = false;
  readonly database = 0;
  readonly replacesSilentConnections = false;
  readonly connectionError = undefined;
  private readonly socket = {};
  private hasEnded = false;

  constructor(
    private readonly server: Promise<InProcessServer>,
    private readonly runtime: Runtime,
  ) {}

  get ended(): boolean {
    return this.hasEnded;
  }

  endedError(): Error {
    return new Error('The connection to the server in this process was closed');
  }

  connect(events: TopologyEvents): void {
    this.server.then(() => events.ready(), events.failed);
  }

  send(name: string, args: readonly string[]): SentCommand {
    const execute = (server: InProcessServer) => {
      if (this.hasEnded) throw this.endedError();
      return server.execute(name, args.map(toBytes));
    };
    return new InProcessCommand(this.socket, this.runtime.monotonic(), this.server.then(execute));
  }

  nodeOfSlot(): string {
    return '';
  }

  has(): boolean {
    return !this.hasEnded;
  }

  refresh(): void {}

  master(): Link {
    return this;
  }

  masters(): readonly Link[] {
    return [this];
  }

  unreachableMasters(): readonly string[] {
    return [];
  }

  masterOn(socket: object | undefined): Link | undefined {
    return socket === this.socket ? this : undefined;
  }

  subscriber(): SubscriberConnection {
    return new InProcessSubscriber(this.server);
  }

  duplicate(): Topology {
    return new InProcessTopology(this.server, this.runtime);
  }

  leaveReplica(): void {}

  async close(): Promise<void> {
    this.hasEnded = true;
  }
}

class InProcessCommand implements SentCommand {
  readonly reply: Promise<unknown>;
  readonly resent = false;
  readonly idleSinceWrite = undefined;
  readonly isLost = false;

  constructor(
    readonly socket: object,
    readonly writtenAt: number,
    reply: Promise<Reply>,
  ) {
    this.reply = reply.then(toText, (error: unknown) => {
      throw error instanceof LuaError ? new InProcessReplyError(error.message) : error;
    });
    this.reply.catch(() => {});
  }

  isAnswer(error: unknown): boolean {
    return error instanceof InProcessReplyError;
  }

  /** It was executed when it was sent. */
  abandon(): void {}

  destroySocket(): void {}
}

/** An error reply. */
class InProcessReplyError extends Error {
  override readonly name = 'ReplyError';
}

class InProcessSubscriber implements SubscriberConnection {
  readonly address = 'memory';
  private readonly subscribed = new Map<string, { readonly kind: ChannelKind; readonly channel: string }>();
  private events: SubscriberEvents | undefined;
  private readonly listener: MessageListener = (subscribed, channel, text) =>
    void Promise.resolve().then(() =>
      this.events?.message(toText(subscribed) as string, toText(channel) as string, toText(text) as string),
    );

  constructor(private readonly server: Promise<InProcessServer>) {}

  open(events: SubscriberEvents): void {
    this.events = events;
    this.server.then(
      () => this.events?.ready(),
      (error) => this.events?.failed(error),
    );
  }

  async subscribe(kind: ChannelKind, channels: readonly string[]): Promise<void> {
    const server = await this.server;
    for (const channel of channels.map(toBytes)) {
      server.subscribe(kind, channel, this.listener);
      this.subscribed.set(`${kind} ${channel}`, { kind, channel });
    }
  }

  async unsubscribe(kind: ChannelKind, channels: readonly string[]): Promise<void> {
    const server = await this.server;
    for (const channel of channels.map(toBytes)) {
      server.unsubscribe(kind, channel, this.listener);
      this.subscribed.delete(`${kind} ${channel}`);
    }
  }

  close(): void {
    this.events = undefined;
    const subscribed = [...this.subscribed.values()];
    this.subscribed.clear();
    const unsubscribe = (server: InProcessServer) => {
      for (const { kind, channel } of subscribed) server.unsubscribe(kind, channel, this.listener);
    };
    if (subscribed.length > 0) void this.server.then(unsubscribe);
  }
}
