import type { Redis, RedisOptions, SentinelAddress } from 'ioredis';
import { requireIoredis } from '../load-client.js';
import { letProcessEnd } from './let-process-end.js';

/** The longest pause between two attempts to connect to a Sentinel that is down or busy. */
const LONGEST_RETRY_DELAY = 10_000;

interface Address {
  readonly host: string | undefined;
  readonly port: number | undefined;
}

/**
 * Listens to the Sentinels of one of our own clients, and makes it leave a master that was replaced. Sentinel itself
 * demotes a replaced master that is still alive only after ten seconds. During that time it would still grant locks.
 *
 * The `failoverDetector` of ioredis does the same, but writes to the console while a Sentinel is down, and permanently
 * ends a client that is about to connect.
 */
export class FailoverWatch {
  private readonly sentinels: readonly Redis[];
  /**
   * Clients, each with the master that it still has to leave: a client that is connecting can leave only once it is
   * ready.
   */
  private readonly followers = new Map<Redis, Address | undefined>();

  constructor(options: RedisOptions) {
    const { name, sentinels = [], sentinelMaxConnections } = options;
    const { Redis } = requireIoredis();
    this.sentinels = sentinels.slice(0, sentinelMaxConnections).map((address) => {
      const sentinel = new Redis(sentinelOptions(options, address));
      letProcessEnd(sentinel);
      sentinel.on('error', () => {}); // other Sentinels remain, and clients report it when none answers
      sentinel.on('message', (_channel: string, message: string) => {
        const [master, oldHost, oldPort, host, port] = message.split(' ');
        if (master === name) this.replaced({ host: oldHost, port: Number(oldPort) }, { host, port: Number(port) });
      });
      sentinel.subscribe('+switch-master').catch(() => {}); // without the permission, there is no watch
      return sentinel;
    });
  }

  /**
   * Makes this client leave masters that were replaced, until it ends. A client that does not reconnect ends instead.
   */
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

  /** Closes the connections to the Sentinels, without waiting for them. */
  close(): void {
    for (const sentinel of this.sentinels) sentinel.disconnect();
    this.followers.clear();
  }

  /** Called once for each Sentinel, at different times, so that a client may be on the new master already. */
  private replaced(old: Address, now: Address): void {
    for (const client of this.followers.keys()) {
      if (client.status !== 'ready') this.followers.set(client, old);
      else if (!isAt(client, now)) client.disconnect(true);
    }
  }
}

/** Also false for host names and behind a `natMap`. A client then reconnects once more than necessary. */
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
