import {
  type AcquireAllReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type AdoptReply,
  type AdoptRequest,
  BackendError,
  type ExpectedHolders,
  type FlightBackend,
  type Grant,
  type HeldType,
  type LockBackend,
  type LockState,
  type NodeWatch,
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
} from '../../../lib/backends/lock-backend.js';
import type { QuorumMember } from '../../../lib/backends/quorum/quorum-member.js';
import type { Runtime } from '../../../lib/backends/runtime.js';
import { WatchedSynchronizers } from './watched-synchronizers.js';

type Command = Exclude<
  keyof QuorumMember,
  | 'description'
  | 'connectionError'
  | 'synchronizers'
  | 'waits'
  | 'line'
  | 'flights'
  | 'directory'
  | 'health'
  | 'adoptRefusal'
  | 'canAcquireTogether'
  | 'subscribe'
  | 'listenToClient'
  | 'close'
>;

/** How a test interferes with a command. `execute` runs the command and returns its reply. */
// biome-ignore lint/suspicious/noExplicitAny: the answers differ from command to command
export type Disturbance = (execute: () => Promise<any>, request: unknown) => Promise<any>;

/** The command did not reach the backend, and the caller knows this. */
export const refused: Disturbance = async () => {
  throw new BackendError('the connection is closed', 'unavailable', 'refused');
};

/** The command was executed, but its answer was lost. */
export const answerLost: Disturbance = async (execute) => {
  await execute();
  throw new BackendError('no answer in time', 'unavailable', 'unknown');
};

/** The command is executed at once, but its answer arrives when `until` settles. */
export const answerAfter =
  (until: Promise<void>): Disturbance =>
  async (execute) => {
    const reply = await execute();
    await until;
    return reply;
  };

const TAKING: readonly Command[] = ['acquire', 'acquireAll', 'transfer', 'adopt'];

/** A real backend. Counts the commands, and lets a test interfere with them. */
export class WatchedBackend implements LockBackend {
  /** Names of all commands so far. */
  readonly commands: Command[] = [];
  /** Requests without an answer. */
  underWay = 0;
  /** The number of open subscriptions, and of all subscriptions so far. */
  subscriptions = 0;
  subscribed = 0;
  private confirmed = 0;
  /** Whether processes may wait in line. */
  hasLines = true;
  /** Delivers the messages, as they are by default. */
  deliver: (wake: Wake, listener: (wake: Wake) => void) => void = (wake, listener) => listener(wake);
  /** Grants with which callers began without asking. */
  readonly begun: Grant[] = [];
  /** Whether the service listens for forced releases. */
  listensToClient = false;

  private readonly disturbances = new Map<Command, Disturbance>();
  private silence: Promise<void> | undefined;

  private readonly watchedSynchronizers: WatchedSynchronizers | undefined;

  private readonly ownHealth: SingleNodeWatch | undefined;

  constructor(
    private readonly backend: LockBackend,
    runtime: Pick<Runtime, 'monotonic'>,
  ) {
    if (backend.health === undefined)
      this.ownHealth = new SingleNodeWatch(backend.description, runtime, () => this.run('ping', '', async () => {}));
    if (backend.synchronizers !== undefined)
      this.watchedSynchronizers = new WatchedSynchronizers(backend.synchronizers);
  }

  /** The health of the backend. For the memory backend, which has none, it results from watched pings. */
  get health(): NodeWatch | undefined {
    return this.backend.health ?? this.ownHealth;
  }

  get description(): string {
    return this.backend.description;
  }

  get connectionError(): Error | undefined {
    return this.backend.connectionError;
  }

  get synchronizers(): LockBackend['synchronizers'] {
    return this.watchedSynchronizers?.port;
  }

  get waits(): LockBackend['waits'] {
    return this.backend.waits;
  }

  /** Requests are counted as `acquire`, `release`, `inspect` and `forceRelease`, and disturbed like these. */
  get flights(): FlightBackend | undefined {
    const { flights } = this.backend;
    return (
      flights && {
        acquire: (request) => this.run('acquire', request, () => flights.acquire(request)),
        release: (release) => this.run('release', release, () => flights.release(release)),
        mayJoin: (run) => this.run('inspect', run.key, () => flights.mayJoin(run)),
        forget: (key) => this.run('forceRelease', key, () => flights.forget(key)),
        inspect: (key) => this.run('inspect', key, () => flights.inspect(key)),
      }
    );
  }

  /** Watches requests for semaphores and latches, if the backend has them. */
  get synchronizerRequests(): WatchedSynchronizers {
    return this.watchedSynchronizers as WatchedSynchronizers;
  }

  /** Whether callers wait for a lock: all subscriptions are confirmed, and no request is under way. */
  get isAsleep(): boolean {
    return this.subscriptions > 0 && this.confirmed === this.subscriptions && this.underWay === 0;
  }

  /** The number of commands so far that have this name, or any name. */
  count(command?: Command): number {
    return command === undefined ? this.commands.length : this.commands.filter((name) => name === command).length;
  }

  /** Applies the disturbance to these commands from now on. */
  disturb(disturbance: Disturbance, ...commands: Command[]): void {
    for (const command of commands) this.disturbances.set(command, disturbance);
  }

  /** Commands are executed and answered as usual again. */
  heal(): void {
    this.disturbances.clear();
    this.watchedSynchronizers?.heal();
  }

  /** New subscriptions are not confirmed until this settles. */
  delaySubscriptions(until: Promise<void>): void {
    this.silence = until;
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    return this.run('acquire', request, () => this.backend.acquire(request));
  }

  canAcquireTogether(keys: readonly string[]): boolean {
    return this.backend.canAcquireTogether(keys);
  }

  acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply> {
    return this.run('acquireAll', requests, () => this.backend.acquireAll(requests));
  }

  release(request: ReleaseRequest): Promise<ReleaseReply> {
    return this.run('release', request, () => this.backend.release(request));
  }

  transfer(request: TransferRequest): Promise<Acquired | undefined> {
    return this.run('transfer', request, () => this.backend.transfer(request));
  }

  get adopt(): LockBackend['adopt'] {
    const adopt = this.backend.adopt?.bind(this.backend);
    return adopt && ((request: AdoptRequest): Promise<AdoptReply> => this.run('adopt', request, () => adopt(request)));
  }

  get adoptRefusal(): string | undefined {
    return this.backend.adoptRefusal;
  }

  renew(request: RenewRequest): Promise<boolean> {
    return this.run('renew', request, () => this.backend.renew(request));
  }

  raiseToken(key: string, type: HeldType, token: number): Promise<void> {
    return this.run('raiseToken', token, () => (this.backend as QuorumMember).raiseToken(key, type, token));
  }

  refreshWaiters(
    places: readonly WaiterRef[],
    waiterTimeout: number,
    keptLonger?: () => void,
  ): Promise<readonly boolean[]> {
    return this.run('refreshWaiters', places, () => this.backend.refreshWaiters(places, waiterTimeout, keptLonger));
  }

  removeWaiter(place: OwnerRef): Promise<void> {
    return this.run('removeWaiter', place, () => this.backend.removeWaiter(place));
  }

  forceRelease(key: string, expected?: ExpectedHolders): Promise<readonly string[]> {
    return this.run('forceRelease', key, () => this.backend.forceRelease(key, expected));
  }

  inspect(key: string): Promise<LockState> {
    return this.run('inspect', key, () => this.backend.inspect(key));
  }

  subscribe(key: string, type: HeldType, clientId: string, listener: (wake: Wake) => void): Subscription {
    return this.watch((hear) => this.backend.subscribe(key, type, clientId, hear), listener);
  }

  private watch(
    subscribe: (listener: (wake: Wake) => void) => Subscription,
    listener: (wake: Wake) => void,
  ): Subscription {
    let confirmed = this.silence === undefined;
    const subscription = subscribe((wake) => confirmed && this.deliver(wake, listener));
    this.subscriptions++;
    this.subscribed++;
    let open = true;
    const ready = subscription.ready.then(async () => {
      await this.silence;
      confirmed = true;
      if (open) this.confirmed++;
    });
    const close = () => {
      if (open) this.subscriptions--;
      if (open && confirmed) this.confirmed--;
      open = false;
      subscription.close();
    };
    return { ready, close };
  }

  get line(): LockBackend['line'] {
    const line = this.hasLines ? this.backend.line : undefined;
    return (
      line && {
        listen: (key, clientId, listener) => this.watch((hear) => line.listen(key, clientId, hear), listener),
        begun: (grant) => {
          this.begun.push(grant);
          line.begun(grant);
        },
      }
    );
  }

  listenToClient(clientId: string, listener: (removal: Removal) => void): Subscription {
    const subscription = this.backend.listenToClient?.(clientId, listener);
    void subscription?.ready.then(() => {
      this.listensToClient = true;
    });
    return subscription ?? { ready: new Promise(() => {}), close: () => {} };
  }

  close(): Promise<void> {
    return this.backend.close();
  }

  private run<T>(command: Command, request: unknown, execute: () => Promise<T>): Promise<T> {
    this.commands.push(command);
    const disturbance = this.disturbances.get(command);
    const reply = disturbance === undefined ? execute() : disturbance(execute, request);
    this.ownHealth?.health.observe(reply, TAKING.includes(command));
    this.underWay++;
    const end = () => void this.underWay--;
    reply.then(end, end);
    return reply;
  }
}
