import { MemoryStore } from '../../../../lib/backends/memory/memory-store.js';
import type { VirtualTime } from './virtual-time.js';

const TODAY = Date.parse('2025-01-01T00:00:00Z');

/** Who wants to know what becomes of the server. */
export interface ServerClient {
  /** All connections are gone; `store` is new when the data is gone too. */
  disconnected(): void;
}

/** The place where locks are kept: real code in memory, by the server's own clock, as a Redis that can stand still or be started anew. */
export class SimulatedServer {
  store: MemoryStore;
  /** Called when all data is lost. */
  onDataLoss: () => void = () => {};
  /** Its clock has been set. */
  clockWasSet = false;
  private readonly clients = new Set<ServerClient>();
  private frozenUntil = 0;
  private downUntil = 0;
  /** The latest time that it showed when its clock was set. */
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

  /** Leases and tokens go by the wall clock, as in Redis. */
  wall = (): number => TODAY + this.time.now * this.rate + this.ahead;

  /** By how many milliseconds its clock shows less than it has shown before. */
  get behind(): number {
    return Math.max(0, this.latest - this.wall());
  }

  get isDown(): boolean {
    return this.time.now < this.downUntil;
  }

  /** When it will look at what arrives now. */
  get attentiveAt(): number {
    return Math.max(this.time.now, this.frozenUntil);
  }

  /** It is stopped and goes on later, with all connections. */
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

  /** Its locks and tokens are gone, and all connections and subscriptions stay. */
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
    return new MemoryStore({ monotonic: this.wall, wall: this.wall });
  }
}
