import type {
  ChannelKind,
  Link,
  SentCommand,
  SubscriberConnection,
  Topology,
} from '../../backends/redis/diagnostics.js';

/** The time limit for a connection and for each reply, in milliseconds. */
export const TIMEOUT = 5_000;

/** One server that this program talks to. */
export class Server {
  constructor(
    private readonly link: Link,
    private readonly topology: Topology,
    /** A slot that it serves, in a cluster. */
    readonly slot?: number,
  ) {}

  /** `host:port` */
  get address(): string {
    return this.link.address;
  }

  /** Sends a command. If the server replies with an error, it is a `ReplyError`. */
  ask(name: string, ...args: string[]): Promise<unknown> {
    return answered(this.link.send(name, args));
  }

  /** Like {@link ask}, for commands that reply with text. */
  async text(name: string, ...args: string[]): Promise<string> {
    return String(await this.ask(name, ...args));
  }

  /** Opens a separate connection for subscriptions, which the caller has to close. */
  async subscriber(): Promise<Subscriber> {
    const connection = this.topology.subscriber(this.slot);
    if (connection === undefined) throw new Error('the node is not known');
    return await Subscriber.open(connection);
  }
}

/** A subscribed connection. */
export class Subscriber {
  private heard: (() => void) | undefined;

  private constructor(private readonly connection: SubscriberConnection) {}

  static async open(connection: SubscriberConnection): Promise<Subscriber> {
    const subscriber = new Subscriber(connection);
    await within(
      new Promise<void>((ready, reject) => {
        let last: unknown;
        connection.open({
          ready,
          failed: (error) => {
            last = error;
          },
          ended: () => reject(last ?? new Error('the connection ended')),
          message: () => subscriber.heard?.(),
        });
      }),
    ).catch((error) => {
      connection.close();
      throw error;
    });
    return subscriber;
  }

  subscribe(kind: ChannelKind, channel: string): Promise<unknown> {
    return within(this.connection.subscribe(kind, [channel]));
  }

  unsubscribe(kind: ChannelKind, channel: string): Promise<unknown> {
    return within(this.connection.unsubscribe(kind, [channel]));
  }

  /** Whether a message arrives within this time, in milliseconds. */
  hears(patience: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), patience);
      this.heard = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  close(): void {
    this.connection.close();
  }
}

function answered(command: SentCommand): Promise<unknown> {
  return within(command.reply).catch((error) => {
    command.abandon();
    throw error;
  });
}

/** @throws Error after {@link TIMEOUT} */
export async function within<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${TIMEOUT} ms`)), TIMEOUT);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
