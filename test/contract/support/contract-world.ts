import type { HeldType } from '../../../lib/backends/lock-backend.js';
import { until } from '../../support/until.js';
import { ALL_TYPES, type Capabilities, type Client, type Fixture } from './fixture.js';
import { Listener } from './listener.js';
import { Owner } from './owner.js';
import { waitsFor } from './timed-clause.js';

/** Long enough for a slow machine to do something within it, short enough to wait for its end. */
export const SHORT = 700;

/**
 * In milliseconds, for a lease or a waiter that only has to expire. A quorum gives each of its nodes half of that to
 * answer.
 */
export const LAPSING = 500;

/** What a suite works with: three clients of one store, unused keys, owners and listeners. */
export class ContractWorld {
  clients: Client[] = [];
  private fixture!: Fixture;
  private readonly extra: Client[] = [];
  private readonly listeners: Listener[] = [];
  private count = 0;
  private firstRelease: Promise<boolean> | undefined;

  constructor(
    private readonly openFixture: () => Promise<Fixture>,
    readonly capabilities: Capabilities,
  ) {}

  get types(): readonly HeldType[] {
    return this.capabilities.types ?? ALL_TYPES;
  }

  /** A lease as the backend rounds it. */
  rounded(lease: number): number {
    const { leaseUnit = 1 } = this.capabilities;
    return Math.ceil(lease / leaseUnit) * leaseUnit;
  }

  has(...types: HeldType[]): boolean {
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
    // Each token advances the clock of tokens. A virtual clock, which stands still meanwhile, catches up with it here.
    await this.clients[0]?.clock?.advance(1_000);
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

  /** Owners of one lock, each of a different client as long as there are enough clients. */
  owners(type: HeldType, count: number, key = this.key()): Owner[] {
    return Array.from({ length: count }, (_, n) => this.owner(type, key, this.clients[n % this.clients.length]));
  }

  /** Owners of one lock that can release what was transferred to them. */
  heirs(type: HeldType, count: number): Owner[] {
    const key = this.key();
    if (this.capabilities.sharesOwners !== false) return this.owners(type, count, key);
    return Array.from({ length: count }, () => this.owner(type, key));
  }

  owner(type: HeldType, key = this.key(), client = this.clients[0]): Owner {
    return new Owner(client, key, type, `${client.id}:${++this.count}`);
  }

  /**
   * Whether a release leaves the lock free at first although only its line waits: in a cluster without sharded channels,
   * a node cannot count who listens outside the line.
   */
  freesFirst(): Promise<boolean> {
    this.firstRelease ??= this.capabilities.countsListeners === false ? this.leavesFree() : Promise.resolve(false);
    return this.firstRelease;
  }

  private async leavesFree(): Promise<boolean> {
    const [ann, bob] = this.owners('reentrant', 2);
    await ann.take();
    await bob.meet({ waiterTimeout: 5_000 });
    await ann.release();
    const isGranted = await bob.holds();
    await bob.removeWaiter();
    return !isGranted;
  }

  /** Subscribes as this owner's process would. Messages are received from the moment this settles. */
  listen({ client, key, type }: Owner): Promise<Listener> {
    return this.opened((heard) => client.backend.subscribe(key, type, client.id, heard));
  }

  /** Listens as a process that waits in line. */
  listenInLine({ client: { backend, id }, key }: Owner): Promise<Listener> {
    const { line } = backend;
    if (line === undefined) throw new Error('this backend has no lines');
    return this.opened((heard) => line.listen(key, id, heard));
  }

  private async opened(subscribe: ConstructorParameters<typeof Listener>[0]): Promise<Listener> {
    const listener = new Listener(subscribe);
    this.listeners.push(listener);
    await listener.ready;
    return listener;
  }

  /** Expects that the listener has received exactly this many messages by now. */
  expectMessages({ heard }: Listener, count: number): void {
    if (this.capabilities.nodesLag) expect(heard.length).toBeGreaterThanOrEqual(count);
    else expect(heard).toHaveLength(count);
  }

  /** Expects that exactly these owners were released by force. */
  expectForced(owners: readonly string[], expected: readonly string[]): void {
    if (this.capabilities.nodesLag) expect(owners).toEqual(expect.arrayContaining([...expected]));
    else expect([...owners].sort()).toEqual([...expected].sort());
  }

  /** A monotonic clock that advances as fast as the backend's own. */
  now(): number {
    return this.clients[0].clock?.monotonic() ?? performance.now();
  }

  wall(): number {
    return this.clients[0].clock?.wall() ?? Date.now();
  }

  /** Waits for something that happens as time passes on the backend's own clock. */
  async until(condition: () => Promise<boolean>): Promise<void> {
    const { clock } = this.clients[0];
    if (clock === undefined) return until(condition);
    for (const end = clock.monotonic() + 15_000; !(await condition()); await clock.advance(5)) {
      if (clock.monotonic() > end) throw new Error(`not so within 15 s of virtual time: ${condition}`);
    }
  }

  /** Settles when this many milliseconds have passed on the backend's own clock. */
  async elapse(time: number): Promise<void> {
    const { clock } = this.clients[0];
    if (clock !== undefined) return clock.advance(time);
    waitsFor(time);
    const owner = this.owner('reentrant');
    await owner.take({ leaseTime: time });
    await until(async () => (await owner.inspect()).mode === 'free');
  }

  /** Settles when the owner's lease of {@link LAPSING} ms has ended, which it took on a lock that nobody else holds. */
  async lapse(owner: Owner): Promise<void> {
    await this.elapse(LAPSING);
    // A database may end one session slightly earlier than another.
    await this.until(async () => (await owner.inspect()).mode === 'free');
  }
}
