import { chunksOf } from '../../chunks.js';
import { BackendError } from '../../lock-backend.js';
import { answerTimer, type Timer } from '../../runtime.js';
import { errorCode, messageOf, withoutSecrets } from '../connection/redis-errors.js';
import type { ConnectionContext } from '../links/connection-context.js';
import type { ChannelKind, SubscriberConnection } from '../links/link.js';
import { isClientChannel } from '../lock-keys.js';

const CHANNEL_KINDS: readonly ChannelKind[] = ['channel', 'pattern', 'sharded'];
const MAX_CHANNELS_PER_COMMAND = 512;

/**
 * A connection that receives no messages may be half open, so it is checked this often while somebody waits for a
 * message, in milliseconds.
 */
const PING_INTERVAL = 2_000;
/**
 * A connection that only listens for forced releases is checked every fifth time, because the next renewals also notice
 * those.
 */
const IDLE_PINGS = 5;
/**
 * A connection whose answer takes longer than this, in milliseconds, counts as lost, because waiters would miss
 * messages.
 */
const LONGEST_ANSWER = 2_000;
const CONNECT_TIMEOUT = 10_000;

/** What a link needs from its subscriber. */
export interface LinkOwner {
  /** Redis confirmed the subscription. */
  confirmed(channel: string): void;
  message(subscribed: string, channel: string, text: string): void;
  /** The user has no right to this channel. */
  refused(channel: string, error: BackendError): void;
  /**
   * The connection is lost, with all subscriptions. Called once. The link cannot be used after that.
   *
   * @param silent it was ready and has stopped answering, so messages may have been lost for some time
   */
  down(silent: boolean): void;
  /** Whether its server is still the right one for its channels. */
  isCurrent(): boolean;
}

/** A requested subscription. */
interface RequestedSubscription {
  readonly channel: string;
  readonly kind: ChannelKind;
  confirmed: boolean;
}

/**
 * One connection for subscriptions. It does not reconnect. A link that is down is replaced by a new one, so that the
 * active subscriptions are always known.
 */
export class SubscriberLink {
  private readonly wanted = new Map<string, ChannelKind>();
  private readonly requested = new Map<string, RequestedSubscription>();
  private readonly changed = new Set<string>();
  private flushScheduled = false;
  private ready = false;
  private ended = false;
  /** Runs while an answer is due. */
  private answerTimer: Timer | undefined;
  private pingTimer: Timer | undefined;
  private pings = 0;

  constructor(
    private readonly connection: SubscriberConnection,
    private readonly context: ConnectionContext,
    private readonly owner: LinkOwner,
  ) {
    this.expectAnswer(CONNECT_TIMEOUT + context.commandTimeout);
    connection.open({
      ready: () => this.start(),
      ended: () => this.end(),
      failed: (error) => this.failed(error),
      message: (subscribed, channel, text) => owner.message(subscribed, channel, text),
    });
  }

  add(channel: string, kind: ChannelKind): void {
    this.wanted.set(channel, kind);
    this.scheduleFlush(channel);
  }

  remove(channel: string): void {
    this.wanted.delete(channel);
    this.scheduleFlush(channel);
  }

  /** It is connected, as far as it knows. */
  get isReady(): boolean {
    return this.ready && !this.ended;
  }

  /** Whether Redis counts this connection among the listeners of a channel. */
  isSubscribed(channel: string): boolean {
    return this.requested.get(channel)?.confirmed ?? false;
  }

  close(): void {
    this.ended = true;
    this.answerTimer?.cancel();
    this.pingTimer?.cancel();
    this.connection.close();
  }

  private start(): void {
    this.ready = true;
    this.answered();
    this.flush();
    if (this.connection.ping !== undefined) this.schedulePing();
  }

  /**
   * Changes of one turn of the event loop are sent together, after the commands that callers wait for. A channel that
   * is added and removed in one turn is never subscribed to.
   */
  private scheduleFlush(channel: string): void {
    this.changed.add(channel);
    if (this.flushScheduled || !this.ready) return;
    this.flushScheduled = true;
    this.context.runtime.nextTurn(() => this.flush());
  }

  private flush(): void {
    this.flushScheduled = false;
    if (this.ended) return;
    const added = new ChannelCommands();
    const removed = new ChannelCommands();
    for (const channel of this.changed) {
      const kind = this.wanted.get(channel);
      const requested = this.requested.get(channel);
      if (kind !== undefined && requested === undefined) added.add(kind, channel);
      else if (kind !== undefined && requested?.confirmed) this.owner.confirmed(channel);
      else if (kind === undefined && requested !== undefined) removed.add(requested.kind, channel);
    }
    this.changed.clear();
    for (const [kind, channels] of added.groups()) this.subscribe(kind, channels);
    for (const [kind, channels] of removed.groups()) this.unsubscribe(kind, channels);
  }

  private subscribe(kind: ChannelKind, channels: readonly string[]): void {
    const requests = channels.map((channel) => ({ channel, kind, confirmed: false }));
    for (const request of requests) this.requested.set(request.channel, request);
    this.expectAnswer(this.longestAnswer);
    this.connection.subscribe(kind, channels).then(
      () => this.confirmed(requests),
      (error: unknown) => this.refused(error, kind, channels),
    );
  }

  private confirmed(requests: readonly RequestedSubscription[]): void {
    this.answered();
    for (const request of requests) {
      if (this.requested.get(request.channel) !== request) continue;
      request.confirmed = true;
      if (this.wanted.has(request.channel)) this.owner.confirmed(request.channel);
    }
  }

  /** If one channel is not permitted, Redis refuses all channels of the command. Each is then requested separately. */
  private refused(error: unknown, kind: ChannelKind, channels: readonly string[]): void {
    if (this.ended) return;
    if (!isDenied(error)) return this.end();
    this.answered();
    for (const channel of channels) this.requested.delete(channel);
    if (channels.length > 1) {
      for (const channel of channels) this.subscribe(kind, [channel]);
      return;
    }
    const [channel] = channels;
    const message = `cannot subscribe to ${channel}, so ${consequenceOf(channel)}: ${messageOf(error)}`;
    this.owner.refused(channel, new BackendError(message, 'denied', 'refused', { cause: withoutSecrets(error) }));
  }

  private unsubscribe(kind: ChannelKind, channels: readonly string[]): void {
    for (const channel of channels) this.requested.delete(channel);
    this.connection.unsubscribe(kind, channels).catch(() => this.end());
  }

  private schedulePing(): void {
    this.pingTimer = this.context.runtime.timer(PING_INTERVAL, () => {
      const isDue = ++this.pings % IDLE_PINGS === 0 || this.hasWaiters;
      if (isDue && this.wanted.size > 0) {
        if (!this.owner.isCurrent()) return this.end();
        this.ping();
      }
      this.schedulePing();
    });
  }

  private ping(): void {
    this.expectAnswer(this.longestAnswer);
    this.connection.ping?.().then(
      () => this.answered(),
      (error: unknown) => (isDenied(error) ? this.answered() : this.end()),
    );
  }

  /** Whether a listener depends on messages. */
  private get hasWaiters(): boolean {
    for (const channel of this.wanted.keys()) if (!isClientChannel(channel)) return true;
    return false;
  }

  private get longestAnswer(): number {
    return Math.min(this.context.commandTimeout, LONGEST_ANSWER);
  }

  private expectAnswer(within: number): void {
    const { runtime } = this.context;
    this.answerTimer ??= answerTimer(runtime, runtime.monotonic() + within, () => this.end(this.ready));
  }

  private answered(): void {
    this.answerTimer?.cancel();
    this.answerTimer = undefined;
  }

  private failed(error: unknown): void {
    if (this.ended) return;
    this.context.onError(withoutSecrets(error));
  }

  private end(silent = false): void {
    if (this.ended) return;
    this.close();
    this.owner.down(silent);
  }
}

/** The server has replied that the user lacks the right. */
function isDenied(error: unknown): boolean {
  return errorCode(messageOf(error)) === 'NOPERM';
}

function consequenceOf(channel: string): string {
  return isClientChannel(channel)
    ? 'a forced release is noticed only at the next renewal'
    : 'waiters for this lock may sleep longer';
}

/** Channels to subscribe to, or to unsubscribe from, grouped by the commands that do so. */
class ChannelCommands {
  private readonly channels: Record<ChannelKind, string[]> = { channel: [], pattern: [], sharded: [] };

  add(kind: ChannelKind, channel: string): void {
    this.channels[kind].push(channel);
  }

  /** One for each command. */
  *groups(): Iterable<readonly [kind: ChannelKind, channels: readonly string[]]> {
    for (const kind of CHANNEL_KINDS) {
      // Sharded channels of one command must be in one slot, so each has its own command.
      const size = kind === 'sharded' ? 1 : MAX_CHANNELS_PER_COMMAND;
      for (const channels of chunksOf(this.channels[kind], size)) yield [kind, channels];
    }
  }
}
