import type { Redis } from 'ioredis';
import { BackendError } from '../../lock-backend.js';
import { deadlineTimer, type Timer } from '../../runtime.js';
import type { ConnectionContext } from '../connection/redis-connection.js';
import { errorCode, messageOf, withoutSecrets } from '../connection/redis-errors.js';
import { isClientChannel } from '../lock-keys.js';

/** How a channel is subscribed to. */
export type ChannelKind = 'channel' | 'pattern' | 'sharded';

/** A connection without a message says nothing: it may be half open. */
const PING_INTERVAL = 10_000;
const CONNECT_TIMEOUT = 10_000;
const MOST_IN_ONE_COMMAND = 512;

export interface LinkEvents {
  /** Redis confirmed the subscription. */
  confirmed(channel: string): void;
  message(subscribed: string, channel: string, text: string): void;
  /** The connection is lost, with all subscriptions. Called once; the link is of no use from then on. */
  down(): void;
}

/**
 * One connection that subscribes. It does not reconnect: a link that is down is replaced by a new one, so that what is
 * subscribed is known at any time.
 */
export class SubscriberLink {
  private readonly wanted = new Map<string, ChannelKind>();
  /** What Redis was asked for, and whether it has confirmed. */
  private readonly asked = new Map<string, { confirmed: boolean; readonly kind: ChannelKind }>();
  private readonly changed = new Set<string>();
  private scheduled = false;
  private ready = false;
  private ended = false;
  /** Runs while an answer is due. */
  private patience: Timer | undefined;
  private heartbeat: Timer | undefined;

  constructor(
    private readonly client: Redis,
    private readonly context: ConnectionContext,
    private readonly events: LinkEvents,
    private readonly isCurrent: () => boolean,
  ) {
    client.on('ready', () => this.begin());
    client.on('end', () => this.end());
    client.on('error', (error: unknown) => this.failed(error));
    client.on('moved', () => this.end());
    client.on('message', (channel: string, text: string) => events.message(channel, channel, text));
    client.on('smessage', (channel: string, text: string) => events.message(channel, channel, text));
    client.on('pmessage', (pattern: string, channel: string, text: string) => events.message(pattern, channel, text));
    this.expectWithin(CONNECT_TIMEOUT + context.commandTimeout);
    client.connect().catch(() => {}); // told by 'error' and 'end'
  }

  add(channel: string, kind: ChannelKind): void {
    this.wanted.set(channel, kind);
    this.change(channel);
  }

  remove(channel: string): void {
    this.wanted.delete(channel);
    this.change(channel);
  }

  /** Whether Redis counts this connection among the listeners of a channel. */
  listens(channel: string): boolean {
    return this.asked.get(channel)?.confirmed ?? false;
  }

  close(): void {
    this.ended = true;
    this.patience?.cancel();
    this.heartbeat?.cancel();
    this.client.disconnect();
  }

  private begin(): void {
    this.ready = true;
    this.answered();
    this.flush();
    this.beat();
  }

  /** What one turn of the event loop asks for goes out together, after the answers that others wait for; what it takes back at once is not asked for at all. */
  private change(channel: string): void {
    this.changed.add(channel);
    if (this.scheduled || !this.ready) return;
    this.scheduled = true;
    setImmediate(() => this.flush());
  }

  private flush(): void {
    this.scheduled = false;
    if (this.ended) return;
    const subscribe: Record<ChannelKind, string[]> = { channel: [], pattern: [], sharded: [] };
    const unsubscribe: Record<ChannelKind, string[]> = { channel: [], pattern: [], sharded: [] };
    for (const channel of this.changed) {
      const kind = this.wanted.get(channel);
      const asked = this.asked.get(channel);
      if (kind !== undefined && asked === undefined) subscribe[kind].push(channel);
      else if (kind !== undefined && asked?.confirmed) this.events.confirmed(channel);
      else if (kind === undefined && asked !== undefined) unsubscribe[asked.kind].push(channel);
    }
    this.changed.clear();
    for (const kind of KINDS) for (const some of chunks(kind, subscribe[kind])) this.subscribe(kind, some);
    for (const kind of KINDS) for (const some of chunks(kind, unsubscribe[kind])) this.unsubscribe(kind, some);
  }

  private subscribe(kind: ChannelKind, channels: readonly string[]): void {
    const asked = channels.map((channel) => ({ channel, confirmed: false, kind }));
    for (const one of asked) this.asked.set(one.channel, one);
    this.expectWithin(this.context.commandTimeout);
    this.client[COMMANDS[kind].subscribe](...channels).then(
      () => {
        this.answered();
        for (const one of asked) {
          if (this.asked.get(one.channel) !== one) continue;
          one.confirmed = true;
          if (this.wanted.has(one.channel)) this.events.confirmed(one.channel);
        }
      },
      (error: unknown) => this.refused(error, kind, channels),
    );
  }

  private refused(error: unknown, kind: ChannelKind, channels: readonly string[]): void {
    if (this.ended) return;
    if (errorCode(messageOf(error)) !== 'NOPERM') return this.end();
    this.answered();
    for (const channel of channels) this.asked.delete(channel);
    if (channels.length > 1) {
      for (const channel of channels) this.subscribe(kind, [channel]);
      return;
    }
    const message = `${channels[0]} cannot be listened to, so ${consequenceOf(channels[0])}: ${messageOf(error)}`;
    this.context.onError(new BackendError(message, 'denied', 'refused', { cause: withoutSecrets(error) }));
  }

  private unsubscribe(kind: ChannelKind, channels: readonly string[]): void {
    for (const channel of channels) this.asked.delete(channel);
    this.client[COMMANDS[kind].unsubscribe](...channels).catch(() => this.end());
  }

  private beat(): void {
    this.heartbeat = this.context.runtime.timer(PING_INTERVAL, () => {
      if (this.wanted.size > 0) {
        if (!this.isCurrent()) return this.end();
        this.expectWithin(this.context.commandTimeout);
        this.client.ping().then(
          () => this.answered(),
          () => this.end(),
        );
      }
      this.beat();
    });
  }

  private expectWithin(time: number): void {
    this.patience ??= deadlineTimer(this.context.runtime, time, () => this.end());
  }

  private answered(): void {
    this.patience?.cancel();
    this.patience = undefined;
  }

  private failed(error: unknown): void {
    if (this.ended) return;
    this.context.onError(withoutSecrets(error));
    // ioredis 5 does not know that a server may end a sharded subscription by itself, when its slot moves.
    if (messageOf(error).startsWith('Command queue state error')) this.end();
  }

  private end(): void {
    if (this.ended) return;
    this.close();
    this.events.down();
  }
}

const KINDS: readonly ChannelKind[] = ['channel', 'pattern', 'sharded'];

const COMMANDS = {
  channel: { subscribe: 'subscribe', unsubscribe: 'unsubscribe' },
  pattern: { subscribe: 'psubscribe', unsubscribe: 'punsubscribe' },
  sharded: { subscribe: 'ssubscribe', unsubscribe: 'sunsubscribe' },
} as const;

function consequenceOf(channel: string): string {
  return isClientChannel(channel)
    ? 'a lock that is released by force is noticed only at its next renewal'
    : 'who waits for it sleeps longer';
}

/** Sharded channels of one command must be in one slot: so each goes alone. */
function chunks(kind: ChannelKind, channels: readonly string[]): string[][] {
  const size = kind === 'sharded' ? 1 : MOST_IN_ONE_COMMAND;
  return Array.from({ length: Math.ceil(channels.length / size) }, (_, n) => channels.slice(n * size, (n + 1) * size));
}
