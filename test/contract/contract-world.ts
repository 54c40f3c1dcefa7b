import { setTimeout as sleep } from 'node:timers/promises';
import type {
  Acquired,
  AcquireReply,
  AcquireRequest,
  Busy,
  Holding,
  LockState,
  LockType,
  ReleaseReply,
  Wake,
} from '../../lib/backends/lock-backend.js';
import { until } from '../support/until.js';
import { ALL_TYPES, type Capabilities, type Client, type Fixture } from './fixture.js';

/** Longer than any test runs. */
export const LONG = 60_000;

/** Long enough for a slow machine to do something within it, short enough to wait for its end. */
export const SHORT = 300;

export type AcquireOptions = Partial<Omit<AcquireRequest, keyof Holding>>;

/** What a suite works with: three clients of one store, keys that nobody used before, owners and listeners. */
export class ContractWorld {
  clients: Client[] = [];
  private fixture!: Fixture;
  private readonly extra: Client[] = [];
  private readonly listeners: Listener[] = [];
  private count = 0;

  constructor(
    private readonly openFixture: () => Promise<Fixture>,
    readonly capabilities: Capabilities,
  ) {}

  get types(): readonly LockType[] {
    return this.capabilities.types ?? ALL_TYPES;
  }

  has(...types: LockType[]): boolean {
    return types.every((type) => this.types.includes(type));
  }

  async open(): Promise<void> {
    this.fixture = await this.openFixture();
    for (let n = 0; n < 3; n++) this.clients.push(await this.fixture.connect());
  }

  /** Ends what a test left open. */
  async tidy(): Promise<void> {
    for (const listener of this.listeners.splice(0)) listener.close();
    await Promise.all(this.extra.splice(0).map(({ backend }) => backend.close()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.clients.map(({ backend }) => backend.close()));
    await this.fixture?.stop();
  }

  /** One more client, closed at the end of the test. */
  async connect(): Promise<Client> {
    const client = await this.fixture.connect();
    this.extra.push(client);
    return client;
  }

  key(name = 'order'): string {
    return `lock:${name}:${++this.count}`;
  }

  /** Owners of one lock, each of another client as far as they go. */
  owners(type: LockType, count: number, key = this.key()): Owner[] {
    return Array.from({ length: count }, (_, n) => this.owner(type, key, this.clients[n % this.clients.length]));
  }

  owner(type: LockType, key = this.key(), client = this.clients[0]): Owner {
    return new Owner(client, key, type, `${client.id}:${++this.count}`);
  }

  /** Listens as this owner's process would, from the moment this settles. */
  async listen({ client, key, type }: Owner): Promise<Listener> {
    const listener = new Listener(client, key, type);
    this.listeners.push(listener);
    await listener.ready;
    return listener;
  }

  /** Settles when so many milliseconds have passed on the backend's own clock. */
  async elapse(time: number): Promise<void> {
    const clock = this.owner('reentrant');
    await clock.take({ leaseTime: time });
    await until(async () => (await clock.inspect()).mode === 'free');
  }
}

/** One owner of one lock, and what it asks its backend. */
export class Owner implements Holding {
  constructor(
    readonly client: Client,
    readonly key: string,
    readonly type: LockType,
    readonly owner: string,
  ) {}

  private get holding(): Holding {
    return { key: this.key, type: this.type, owner: this.owner };
  }

  request(options: AcquireOptions = {}): AcquireRequest {
    return { ...this.holding, leaseTime: LONG, reserve: 0, placeTimeout: 0, preferWriters: false, ...options };
  }

  acquire(options?: AcquireOptions): Promise<AcquireReply> {
    return this.client.backend.acquire(this.request(options));
  }

  /** Acquires a lock that must not be busy. */
  async take(options?: AcquireOptions): Promise<Acquired> {
    const reply = await this.acquire(options);
    if (!reply.acquired) throw new Error(`${this.type} lock ${this.key} is busy, held by ${reply.holder}`);
    return reply;
  }

  /** Asks for a lock that must be busy. */
  async meet(options?: AcquireOptions): Promise<Busy> {
    const reply = await this.acquire(options);
    if (reply.acquired) throw new Error(`${this.type} lock ${this.key} is not busy`);
    return reply;
  }

  /** Acquires by looking again when a busy reply says so, without any wake-up. Gives how often it looked. */
  async takeInTime(options?: AcquireOptions): Promise<number> {
    for (let looks = 1; ; looks++) {
      const reply = await this.acquire(options);
      if (reply.acquired) return looks;
      if (looks === 50)
        throw new Error(`${this.type} lock ${this.key}: still busy, told to look again in ${reply.remaining} ms`);
      await sleep(reply.remaining);
    }
  }

  release(): Promise<ReleaseReply> {
    return this.client.backend.release(this.holding);
  }

  releaseQuietly(): Promise<ReleaseReply> {
    return this.client.backend.release({ ...this.holding, quietly: true });
  }

  raiseToken(token: number): Promise<void> {
    return this.client.backend.raiseToken(this.key, this.type, token);
  }

  renew(leaseTime = LONG): Promise<boolean> {
    return this.client.backend.renew({ ...this.holding, leaseTime });
  }

  passTo(to: Owner, leaseTime = LONG, reserve = 0): Promise<Acquired | undefined> {
    const { key, type, owner: from } = this;
    return this.client.backend.pass({ key, type, from, to: to.owner, leaseTime, reserve });
  }

  async refreshPlace(placeTimeout = LONG): Promise<boolean> {
    const [kept] = await this.client.backend.refreshPlaces([this.holding], placeTimeout);
    return kept;
  }

  leavePlace(): Promise<void> {
    return this.client.backend.leavePlace(this.holding);
  }

  forceRelease(): Promise<boolean> {
    return this.client.backend.forceRelease(this.key);
  }

  inspect(): Promise<LockState> {
    return this.client.backend.inspect(this.key);
  }

  /** The same owner, in another kind of lock of this name. */
  as(type: LockType): Owner {
    return new Owner(this.client, this.key, type, this.owner);
  }

  /** What is left of its lease; undefined when it does not hold the lock. */
  async remaining(): Promise<number | undefined> {
    return (await this.inspect()).owners.find(({ owner }) => owner === this.owner)?.remaining;
  }

  async holds(): Promise<boolean> {
    return (await this.remaining()) !== undefined;
  }
}

/** A subscription that counts what it hears. */
export class Listener {
  /** Messages; that some may have been lost is no message. */
  readonly heard: Extract<Wake, { kind: 'message' }>[] = [];
  readonly ready: Promise<void>;
  readonly close: () => void;

  constructor(client: Client, key: string, type: LockType) {
    const subscription = client.backend.subscribe(key, type, client.id, (wake) => {
      if (wake.kind === 'message') this.heard.push(wake);
    });
    this.ready = subscription.ready;
    this.close = () => subscription.close();
  }

  /** Settles with the `count`-th message. */
  async hears(count = 1): Promise<void> {
    await until(() => this.heard.length >= count);
  }
}
