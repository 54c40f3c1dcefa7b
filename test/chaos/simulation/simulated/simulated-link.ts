import {
  type AcquireAllReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type AdoptReply,
  type AdoptRequest,
  BackendError,
  type ExpectedHolders,
  type HeldType,
  type LineBackend,
  type LockBackend,
  type LockState,
  type OwnerRef,
  type ReleaseReply,
  type ReleaseRequest,
  type Removal,
  type RenewRequest,
  SingleNodeWatch,
  type Subscription,
  type TransferRequest,
  type WaiterRef,
  type Wake,
} from '../../../../lib/backends/lock-backend.js';
import type { QuorumMember } from '../../../../lib/backends/quorum/quorum-member.js';
import type { SynchronizerBackend } from '../../../../lib/backends/synchronizer-backend.js';
import { validity } from '../../../../lib/engine/hold/lease-clock.js';
import { SpentOwners } from '../../../support/watched/spent-owners.js';
import { MemoryBackend } from '../twin/memory-backend.js';
import type { MemoryStore } from '../twin/memory-store.js';
import type { LinkTrace, Subject } from './link-trace.js';
import type { Network } from './network-conditions.js';
import { SimulatedCommand, type WhenResent } from './simulated-command.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { ServerClient, SimulatedServer } from './simulated-server.js';
import { SimulatedSubscription } from './simulated-subscription.js';
import { SimulatedSynchronizers } from './simulated-synchronizers.js';
import type { VirtualTime } from './virtual-time.js';

/** The line of messages: see SimulatedSubscription. */
const MESSAGES = 'messages';
/** The lines of commands that take something. */
const TAKING = ['acquire', 'take'];

export interface LinkSettings {
  readonly commandTimeout: number;
  /** Commands of all kinds keep their order. Otherwise, only those of one kind do. */
  readonly oneLine: boolean;
  /** Whether several locks can be taken in one step. */
  readonly together: boolean;
  /** Each name is in a separate slot on a separate node, so its commands have a separate line. */
  readonly scattered: boolean;
  /** The server executes requests whose callers have left. Used to test the tests. */
  readonly executesLate?: boolean;
  /** Replaces the memory backend. Used to test the tests. */
  readonly disguise?: (backend: LockBackend) => LockBackend;
  readonly disguiseSynchronizers?: (synchronizers: SynchronizerBackend) => SynchronizerBackend;
  readonly trace?: LinkTrace;
}

/** A line on which everything arrives in order. */
export interface Line {
  lastArrival: number;
}

/** What a link needs to know about a subscription. */
export interface LinkSubscription {
  /** It lasts as long as the service. */
  readonly lasting: boolean;
  interrupted(): void;
  close(): void;
}

/**
 * The connection of one process to the server: a backend whose commands and messages take time, and sometimes do not
 * arrive.
 */
export class SimulatedLink implements LockBackend, ServerClient {
  readonly description = 'simulated';
  readonly synchronizers: SimulatedSynchronizers;
  readonly health: SingleNodeWatch;
  readonly open = new Set<SimulatedCommand<unknown>>();
  readonly subscribed = new Set<LinkSubscription>();
  /** Called with the locks that a forced release has taken, when the process knows of them. */
  onForced: (key: string, owners: readonly string[]) => void = () => {};
  /** Called with an owner id that is sent in an acquisition after its release. */
  onReused: (key: string, id: string) => void = () => {};
  readonly owners = new SpentOwners((key, id) => this.onReused(key, id));
  /** The number of the current connection. */
  connection = 1;
  /** The highest fencing token that has arrived here. Requests contain it, like calls of the scripts. */
  private highestToken = 0;
  private closed = false;
  private cutUntil = 0;
  private cutKeeps = false;
  private readonly lines = new Map<string, Line>();
  private backends = new Map<MemoryStore, LockBackend>();

  constructor(
    readonly time: VirtualTime,
    readonly process: SimulatedProcess,
    readonly server: SimulatedServer,
    readonly network: Network,
    readonly settings: LinkSettings,
  ) {
    this.synchronizers = new SimulatedSynchronizers(this, settings.disguiseSynchronizers);
    this.health = new SingleNodeWatch(this.description, process, () => this.send('ping', async () => {}));
    server.join(this);
  }

  /** The backend at which commands arrive now. */
  get backend(): LockBackend {
    const { store } = this.server;
    let backend = this.backends.get(store);
    if (backend === undefined) {
      const memory = new MemoryBackend({ runtime: this.process, store });
      backend = this.settings.disguise?.(memory) ?? memory;
      this.backends.set(store, backend);
    }
    return backend;
  }

  /** Until when the process counts on a lease that it asks for now, in virtual time, by its own clock. */
  endOfLease(leaseTime: number): number {
    return this.time.now + validity(leaseTime) * this.process.tick;
  }

  get subscriptions(): number {
    return [...this.subscribed].filter(({ lasting }) => !lasting).length;
  }

  get isClosed(): boolean {
    return this.closed;
  }

  get isCut(): boolean {
    return this.time.now < this.cutUntil;
  }

  /** When data that is held back now will arrive; undefined: never. */
  get afterCut(): number | undefined {
    return this.cutKeeps ? this.cutUntil : undefined;
  }

  /** Cuts the connection for this time. `keeps`: what was sent meanwhile arrives afterwards. */
  cut(duration: number, keeps: boolean): void {
    this.cutUntil = Math.max(this.cutUntil, this.time.now + duration);
    this.cutKeeps = keeps;
    if (!keeps) this.time.at(this.cutUntil, () => this.disconnected());
  }

  disconnected(): void {
    this.connection++;
    this.lines.clear();
    for (const command of [...this.open]) command.disconnected();
    for (const subscription of this.subscribed) subscription.interrupted();
  }

  /** How long something takes that follows other data on this line. */
  travel(name: string): number {
    const { now } = this.time;
    const line = this.lines.get(name) ?? { lastArrival: 0 };
    line.lastArrival = Math.max(now + this.network.delay(), line.lastArrival);
    this.lines.set(name, line);
    return line.lastArrival - now;
  }

  /** Delays everything that follows on this line. */
  stall(name: string, duration: number): void {
    const line = this.lines.get(name) ?? { lastArrival: 0 };
    line.lastArrival = Math.max(line.lastArrival, this.time.now) + duration;
    this.lines.set(name, line);
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const seen = this.highestToken;
    this.owners.acquiring(request);
    const { trace } = this.settings;
    const sent = (trace?.knowsGrants ?? true) ? request : withoutNonce(request);
    const reply = await this.take(
      this.lineOf('acquire', request),
      (backend) => raised(backend, [request], seen).acquire(sent),
      withLimit,
      {
        ...subjectOf('acquire', request),
        waiterTimeout: request.waiterTimeout,
        pastLine: request.pastLine === true,
        permits: request.permits ?? 0,
        nonce: request.nonce,
        grantLease: request.grantLease ?? request.leaseTime,
      },
    );
    if (reply.acquired) this.sees(reply.token + reply.reserved);
    else if (request.nonce !== undefined && this.network.fateOfGrant() === 'forged') {
      const { key, owner } = request;
      this.process.receive(this.network.within(100), () => this.forgeGrant(key, owner));
    }
    return reply;
  }

  canAcquireTogether(): boolean {
    return this.settings.together && !this.settings.scattered;
  }

  async acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply> {
    const seen = this.highestToken;
    for (const request of requests) this.owners.acquiring(request);
    const reply = await this.take(
      'acquire',
      (backend) => raised(backend, requests, seen).acquireAll(requests),
      withLimit,
      { kind: 'acquire-all', keys: requests.map(({ key }) => key), types: requests.map(({ type }) => type) },
    );
    if (reply.acquired) this.sees(...reply.tokens);
    return reply;
  }

  /**
   * Releases are sent at the end of the tick, after requests that are sent at once, and can be withdrawn until then.
   */
  async release(request: ReleaseRequest): Promise<ReleaseReply> {
    if (request.queued !== undefined) {
      request.queued();
      await new Promise<void>((resolve) => process.nextTick(resolve));
      if (request.leavesQueue?.() === false) return { released: false, listeners: 0, published: false, resent: false };
    }
    this.owners.givingBack(request);
    return this.send(
      this.lineOf('release', request),
      (backend) => backend.release(request),
      (reply) => ({ ...reply, resent: true }),
      undefined,
      { kind: 'release', key: request.key, type: request.type, owner: request.owner },
    );
  }

  async transfer(request: TransferRequest): Promise<Acquired | undefined> {
    const { key, from, to } = request;
    const seen = this.highestToken;
    this.owners.acquiring({ key, owner: to });
    this.owners.givingBack({ key, owner: from });
    const reply = await this.take(
      this.lineOf('acquire', request),
      (backend) => raised(backend, [request], seen).transfer(request),
      (passed, validUntil) => passed && withLimit(passed, validUntil),
      { ...subjectOf('transfer', { ...request, owner: to }), from },
    );
    if (reply !== undefined) this.sees(reply.token + reply.reserved);
    return reply;
  }

  async adopt(request: AdoptRequest): Promise<AdoptReply> {
    const { key, to } = request;
    const seen = this.highestToken;
    this.owners.acquiring({ key, owner: to });
    const reply = await this.take<AdoptReply>(
      this.lineOf('acquire', request),
      (backend) => (raised(backend, [request], seen) as Required<LockBackend>).adopt(request),
      withLimit,
    );
    if (reply.acquired) this.sees(reply.token + reply.reserved);
    return reply;
  }

  renew(request: RenewRequest): Promise<boolean> {
    const { key, type, owner, leaseTime } = request;
    const subject = { kind: 'renew', key, type, owner, leaseTime } as const;
    return this.send(
      this.lineOf('renew', request),
      (backend) => backend.renew(request),
      (reply) => reply,
      undefined,
      subject,
    );
  }

  raiseToken(key: string, type: HeldType, token: number): Promise<void> {
    return this.send(
      'token',
      (backend) => (backend as QuorumMember).raiseToken(key, type, token),
      undefined,
      undefined,
      { kind: 'raise', key, token },
    );
  }

  refreshWaiters(places: readonly WaiterRef[], waiterTimeout: number): Promise<readonly boolean[]> {
    const [{ key }] = places;
    const sent = (this.settings.trace?.knowsGrants ?? true) ? places : places.map(withoutNonce);
    return this.send(
      this.lineOf('places', places[0]),
      (backend) => backend.refreshWaiters(sent, waiterTimeout),
      (kept) => kept,
      undefined,
      {
        kind: 'keep',
        key,
        owners: places.map(({ owner }) => owner),
        nonces: sent.map(({ nonce }) => nonce),
        waiterTimeout,
      },
    );
  }

  removeWaiter(place: OwnerRef): Promise<void> {
    this.owners.givingBack(place);
    return this.send(
      this.lineOf('places', place),
      (backend) => backend.removeWaiter(place),
      () => {},
      undefined,
      { kind: 'leave', key: place.key, owner: place.owner },
    );
  }

  forceRelease(key: string, expected?: ExpectedHolders): Promise<readonly string[]> {
    const subject = { kind: 'force', key } as const;
    return this.send(
      'force',
      (backend) => backend.forceRelease(key, expected),
      (owners) => owners,
      undefined,
      subject,
    ).then((owners) => {
      this.onForced(key, owners);
      return owners;
    });
  }

  inspect(key: string): Promise<LockState> {
    return this.send('inspect', (backend) => backend.inspect(key));
  }

  subscribe(key: string, type: HeldType, clientId: string, listener: (wake: Wake) => void): Subscription {
    if (this.closed) return { ready: new Promise(() => {}), close: () => {} };
    const ask = (hear: (wake: Wake) => void) => this.backend.subscribe(key, type, clientId, hear);
    return new SimulatedSubscription(this, ask, listener, () => listener({ kind: 'resync' }));
  }

  /** The latest listener in the line of each lock. */
  private readonly inLine = new Map<string, (wake: Wake) => void>();

  readonly line: LineBackend = {
    listen: (key, clientId, listener) => {
      if (this.closed) return { ready: new Promise(() => {}), close: () => {} };
      const ask = (hear: (wake: Wake) => void) =>
        (this.backend.line as LineBackend).listen(key, clientId, (wake) => this.deliver(wake, hear));
      const subscription = new SimulatedSubscription(this, ask, listener, () => listener({ kind: 'resync' }));
      this.inLine.set(key, listener);
      return subscription;
    },
    begun: (grant) => this.sees(grant.token + grant.reserved),
  };

  private deliver(wake: Wake, hear: (wake: Wake) => void): void {
    if (wake.kind !== 'message' || wake.grant === undefined) return hear(wake);
    const { network, time } = this;
    const { grant, ...doubtful } = wake;
    const fate = network.fateOfGrant();
    if (fate === 'uncertain') return hear(doubtful);
    if (fate === 'late') this.stall(MESSAGES, network.within(1_500));
    if (fate === 'forged') hear({ ...wake, grant: { ...grant, nonce: 'forged', token: 1 } });
    else hear(wake);
    if (fate === 'doubled') time.after(network.within(2_500), () => hear(wake));
  }

  /** Tells a process that waits in line, without the right to do so, that it was granted the lock. */
  private forgeGrant(key: string, owner: string): void {
    const grant = { nonce: 'forged', token: 1, reserved: 0, after: 0, lease: 30_000 };
    this.inLine.get(key)?.({ kind: 'message', owner, lock: 'granted', grant });
  }

  listenToClient(clientId: string, listener: (removal: Removal) => void): Subscription {
    if (this.closed) return { ready: new Promise(() => {}), close: () => {} };
    const ask = (hear: (removal: Removal) => void) =>
      this.backend.listenToClient?.(clientId, hear) ?? { ready: new Promise(() => {}), close: () => {} };
    return new SimulatedSubscription(this, ask, listener, () => {}, true);
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const command of [...this.open]) command.fail('the backend was closed', 'unknown');
    for (const subscription of [...this.subscribed]) subscription.close();
  }

  /**
   * Called when the process has died. What it has sent still arrives, and the server notices the end sooner or later.
   */
  abandon(): void {
    this.time.after(this.network.within(2_000), () => {
      for (const subscription of [...this.subscribed]) subscription.close();
    });
  }

  /** Sends a command on the line of the commands whose order is kept. */
  send<T>(
    line: string,
    execute: (backend: LockBackend) => Promise<T>,
    whenResent: WhenResent<T> = (reply) => reply,
    validUntil?: number,
    subject?: Subject,
  ): Promise<T> {
    if (this.closed) return Promise.reject(new BackendError('the backend was closed', 'unavailable', 'refused'));
    const onLine = this.settings.oneLine ? line.replace(/^\w+/, 'commands') : line;
    const trace = subject && this.settings.trace?.sent(this.process.name, subject, this.highestToken, validUntil);
    const { answer } = new SimulatedCommand(this, onLine, execute, whenResent, validUntil, trace);
    return this.health.health.observe(answer, TAKING.includes(/^\w+/.exec(line)?.[0] ?? line));
  }

  /** Sends a command that takes something. The server does not execute it after its caller has left. */
  take<T>(
    line: string,
    execute: (backend: LockBackend) => Promise<T>,
    whenResent: WhenResent<T>,
    subject?: Subject,
  ): Promise<T> {
    const { server, settings, network } = this;
    // The process estimates the server's clock from earlier answers, so that the limit is never too early.
    const limit = server.wall() + settings.commandTimeout * 1.01 + network.delay();
    return this.send(line, execute, whenResent, this.executesLate ? undefined : limit, subject);
  }

  /** The line for commands about one lock. */
  private lineOf(kind: string, { key }: { readonly key: string }): string {
    return this.settings.scattered ? `${kind} about ${key}` : kind;
  }

  private get executesLate(): boolean {
    return this.settings.executesLate ?? false;
  }

  private sees(...tokens: readonly number[]): void {
    this.highestToken = Math.max(this.highestToken, ...tokens);
  }
}

function subjectOf<Kind extends 'acquire' | 'transfer'>(
  kind: Kind,
  request: OwnerRef & { leaseTime: number; reserve: number },
) {
  const { key, type, owner, leaseTime } = request;
  return { kind, key, type, owner, leaseTime, reserve: () => request.reserve };
}

/** A request whose nonce comes back in no message. A request for a lock is the same object, because it may still change. */
function withoutNonce<R extends { readonly nonce?: string | undefined }>(request: R): R {
  return Object.create(request, { nonce: { value: undefined } }) as R;
}

function withLimit<T extends object>(reply: T, validUntil: number | undefined): T {
  return { ...reply, validUntil };
}

/** The same backend, but its tokens are higher than those that the client has seen, even after its data was lost. */
function raised(backend: LockBackend, locks: readonly { key: string; type: HeldType }[], seen: number): LockBackend {
  if (seen > 0) for (const { key, type } of locks) void (backend as QuorumMember).raiseToken(key, type, seen);
  return backend;
}
