import type { Wake } from '../../../../lib/backends/subscription.js';
import { MemoryStore } from '../twin/memory-store.js';
import type { VirtualTime } from './virtual-time.js';

const TODAY = Date.parse('2025-01-01T00:00:00Z');

/** The message to the client of a place that was granted the lock, or is told of it. */
export type LineMessage = Wake & { readonly kind: 'message'; readonly owner: string };

/** A client that is notified of what happens to the server. */
export interface ServerClient {
  /** Called when all connections are lost. `store` is a new one if the data is lost, too. */
  disconnected(): void;
}

/**
 * The server that keeps the locks: the real memory store with the server's own clock. Like a Redis, it can be stopped
 * and restarted.
 */
export class SimulatedServer {
  store: MemoryStore;
  /** Called when all data is lost. */
  onDataLoss: () => void = () => {};
  /** Called when a place in line was granted the lock, or is told of it, even if nobody hears of that. */
  onLineMessage: (channel: string, message: LineMessage) => void = () => {};
  /** Its clock has been set. */
  clockWasSet = false;
  private readonly clients = new Set<ServerClient>();
  private frozenUntil = 0;
  private downUntil = 0;
  /** The latest time that its clock had shown before it was set. */
  private latest = 0;

  /** @param rate how fast its clock runs */
  constructor(
    private readonly time: VirtualTime,
    private readonly rate: number,
    private ahead = 0,
  ) {
    this.store = this.empty();
  }

  join(client: ServerClient): void {
    this.clients.add(client);
  }

  /** The wall clock, by which leases and tokens are measured, as in Redis. */
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

  /** Stops the server for a while. Connections are kept. */
  freeze(duration: number): void {
    this.frozenUntil = Math.max(this.frozenUntil, this.time.now + duration);
  }

  restart(duration: number, keepsData: boolean): void {
    this.downUntil = Math.max(this.downUntil, this.time.now + duration);
    if (!keepsData) {
      this.store = this.empty();
      this.onDataLoss();
    }
    for (const client of this.clients) client.disconnected();
  }

  /** Deletes its locks and tokens. Connections and subscriptions are kept. */
  flush(): void {
    const { channels, clientChannels, synchronizers, ...data } = this.empty();
    Object.assign(this.store, data);
    this.onDataLoss();
  }

  setClock(by: number): void {
    this.latest = Math.max(this.latest, this.wall());
    this.ahead += by;
    this.clockWasSet = true;
  }

  private empty(): MemoryStore {
    const store = new MemoryStore({ monotonic: this.wall, wall: this.wall });
    const { channels } = store;
    const { publish } = channels;
    channels.publish = (channel, backend, message, runtime) => {
      if (isLineMessage(message)) this.onLineMessage(channel, message);
      return publish.call(channels, channel, backend, message, runtime);
    };
    return store;
  }
}

function isLineMessage(message: Wake): message is LineMessage {
  return message.kind === 'message' && message.owner !== undefined;
}
