import type { Subscription } from '../../../../lib/backends/lock-backend.js';
import type { LinkSubscription, SimulatedLink } from './simulated-link.js';

/** A process notices within this many milliseconds that its subscription is lost. */
const LONGEST_SILENCE = 2_000;
const LONGEST_RETURN = 200;
const LINE = 'messages';

/**
 * A subscription that takes a while to become active, can be interrupted and become active again, and whose messages
 * take time.
 */
export class SimulatedSubscription<Message> implements Subscription, LinkSubscription {
  readonly ready: Promise<void>;
  private resolve!: () => void;
  private stood = false;
  private closed = false;
  private atServer: Subscription | undefined;
  /** Grows with each interruption. */
  private era = 0;

  constructor(
    private readonly link: SimulatedLink,
    private readonly ask: (hear: (message: Message) => void) => Subscription,
    private readonly listener: (message: Message) => void,
    private readonly resync: () => void,
    readonly lasting = false,
  ) {
    this.ready = new Promise((resolve) => {
      this.resolve = resolve;
    });
    link.subscribed.add(this);
    this.request();
  }

  /** Ends the subscription. The server is notified later. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.link.subscribed.delete(this);
    this.link.time.after(this.link.network.delay(), () => this.atServer?.close());
  }

  /** Called when the connection is lost. When it is back, messages may have been lost. */
  interrupted(): void {
    this.era++;
    this.atServer?.close();
    this.atServer = undefined;
    this.link.time.after(this.link.network.within(LONGEST_RETURN), () => this.request());
  }

  private request(): void {
    const { era, link } = this;
    link.time.after(link.travel(LINE), () => {
      if (era !== this.era || this.closed || link.process.dead) return;
      if (link.isCut || link.server.isDown)
        return link.time.after(link.network.within(LONGEST_RETURN), () => this.request());
      this.atServer = this.ask((message) => this.hear(message, era));
      link.process.receive(link.travel(LINE), () => {
        if (era === this.era && !this.closed) this.confirm();
      });
    });
  }

  private confirm(): void {
    if (this.stood) return this.resync();
    this.stood = true;
    this.resolve();
  }

  private hear(message: Message, era: number): void {
    const { link } = this;
    if (era !== this.era) return;
    if (link.isCut || !link.network.hears()) return this.miss();
    link.process.receive(link.travel(LINE), () => {
      // Listeners do not rely on messages before the subscription is confirmed.
      if (era === this.era && !this.closed && this.stood) this.listener(message);
    });
  }

  /** A half-open connection delivers nothing. A ping without an answer reveals it. */
  private miss(): void {
    const { era, link } = this;
    link.time.after(link.network.within(LONGEST_SILENCE), () => {
      if (era === this.era && !this.closed) this.interrupted();
    });
  }
}
