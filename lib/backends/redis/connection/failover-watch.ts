import { Redis, type RedisOptions, type SentinelAddress } from 'ioredis';

/** How long a Sentinel that is away, or busy, is left alone between two attempts. */
const LONGEST_RETRY_DELAY = 10_000;

interface Address {
  readonly host: string | undefined;
  readonly port: number | undefined;
}

/**
 * Listens to the Sentinels of one of our own clients, and has it leave a master that was replaced. Sentinel itself tells a master
 * that lives on only after ten seconds, in which it would go on granting locks.
 *
 * The `failoverDetector` of ioredis does the same, but writes to the console while a Sentinel is away, and ends a client for good
 * that is about to connect.
 */
export class FailoverWatch {
  private readonly sentinels: readonly Redis[];
  /** Who follows, and what it still has to leave: nobody can be called back who is about to connect. */
  private readonly followers = new Map<Redis, Address | undefined>();

  constructor(options: RedisOptions) {
    const { name, sentinels = [], sentinelMaxConnections } = options;
    this.sentinels = sentinels.slice(0, sentinelMaxConnections).map((address) => {
      const sentinel = new Redis(sentinelOptions(options, address));
      sentinel.on('error', () => {}); // others are there; and who connects is told when none is
      sentinel.on('message', (_channel: string, message: string) => {
        const [master, oldHost, oldPort, host, port] = message.split(' ');
        if (master === name) this.replaced({ host: oldHost, port: Number(oldPort) }, { host, port: Number(port) });
      });
      sentinel.subscribe('+switch-master').catch(() => {}); // not allowed to: then it is as without a watch
      return sentinel;
    });
  }

  /** From now on this client leaves masters that were replaced, until it ends. One that does not reconnect ends instead. */
  follow(client: Redis): void {
    this.followers.set(client, undefined);
    client.on('ready', () => {
      const old = this.followers.get(client);
      if (old === undefined) return;
      this.followers.set(client, undefined);
      if (isAt(client, old)) client.disconnect(true);
    });
    client.once('end', () => this.followers.delete(client));
  }

  /** The connections to the Sentinels, which end without being waited for. */
  close(): void {
    for (const sentinel of this.sentinels) sentinel.disconnect();
    this.followers.clear();
  }

  /** Each Sentinel says it in its own time, so that some may be where they should be. */
  private replaced(old: Address, now: Address): void {
    for (const client of this.followers.keys()) {
      if (client.status !== 'ready') this.followers.set(client, old);
      else if (!isAt(client, now)) client.disconnect(true);
    }
  }
}

/** Not with names in place of addresses, or behind a `natMap`: then it is taken for elsewhere. */
function isAt({ stream }: Redis, { host, port }: Address): boolean {
  const { remoteAddress, remotePort } = stream as { remoteAddress?: string; remotePort?: number };
  return remotePort === port && remoteAddress?.replace('::ffff:', '') === host;
}

function sentinelOptions(
  options: RedisOptions,
  { host, port, family = options.family }: Partial<SentinelAddress>,
): RedisOptions {
  const { sentinelUsername, sentinelPassword, sentinelTLS, connectTimeout, protocol } = options;
  return {
    host,
    port: Number(port ?? 26_379),
    family,
    protocol,
    username: sentinelUsername,
    password: sentinelPassword,
    tls: sentinelTLS,
    connectTimeout,
    enableReadyCheck: false,
    maxRetriesPerRequest: null,
    disconnectTimeout: 100, // there is nothing to flush
    retryStrategy: (times) => Math.min(100 * 2 ** times, LONGEST_RETRY_DELAY),
  };
}
