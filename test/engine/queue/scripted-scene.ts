import {
  type Acquired,
  type AcquireRequest,
  BackendError,
  type BlockingBackend,
  type Busy,
  type Grant,
  type HeldType,
  type LockBackend,
  type OwnerRef,
  type ReleaseReply,
  type RenewRequest,
  SingleNodeWatch,
  type Subscription,
  type TransferRequest,
  type WaiterRef,
  type Wake,
} from '../../../lib/backends/lock-backend.js';
import type { LockLease } from '../../../lib/engine/lease/lock-lease.js';
import { LockEngine } from '../../../lib/engine/lock-engine.js';
import type { EngineSettings } from '../../../lib/engine/services.js';
import { FOREVER, type Milliseconds } from '../../../lib/engine/terms/duration.js';
import { type AcquisitionTerms, DEFAULT_TERMS } from '../../../lib/engine/terms/lock-options.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import { ms, RecordingLogger } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

export const KEY = 'lock:order';
/** A third of it is the time between two heartbeats of a waiter. */
export const WAITER_TIMEOUT = 6_000;

interface Requests {
  acquire: AcquireRequest;
  release: OwnerRef;
  transfer: TransferRequest;
  refreshWaiters: readonly WaiterRef[];
  removeWaiter: OwnerRef;
  renew: RenewRequest;
}
export type Command = keyof Requests;

/** A request that waits until the test answers it. */
export class Sent<Request = AcquireRequest> {
  readonly reply: Promise<never>;
  isAnswered = false;
  private resolve!: (reply: never) => void;
  private reject!: (error: Error) => void;

  /** @param onWait for an acquisition that waits in the backend: called when it waits */
  constructor(
    readonly command: Command,
    readonly request: Request,
    private readonly runtime: VirtualRuntime,
    readonly onWait: (reason: Busy | BackendError) => void = () => {},
  ) {
    this.reply = new Promise<never>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  answer(reply?: unknown): Promise<void> {
    this.isAnswered = true;
    this.resolve(reply as never);
    return this.runtime.settle();
  }

  /** The lock is granted. */
  grant(more: Partial<Acquired> = {}): Promise<void> {
    return this.answer({ acquired: true, token: 1, reserved: 0, ...more });
  }

  /** Another process holds the lock. */
  busy(more: Partial<Busy> = {}): Promise<void> {
    return this.answer({ acquired: false, remaining: -1, holder: 'other:1', ...more });
  }

  fail(
    outcome: BackendError['outcome'] = 'refused',
    kind: BackendError['kind'] = 'unavailable',
    options: { readonly validUntil?: number; readonly spent?: boolean } = {},
  ): Promise<void> {
    this.isAnswered = true;
    this.reject(new BackendError('no connection', kind, outcome, options));
    return this.runtime.settle();
  }
}

/** A subscription that the test confirms. */
export class Heard implements Subscription {
  readonly ready: Promise<void>;
  closed = 0;
  private open!: () => void;

  /** @param type `line`: it listens for its place in line */
  constructor(
    readonly type: HeldType | 'line',
    readonly listener: (wake: Wake) => void,
    private readonly runtime: VirtualRuntime,
  ) {
    this.ready = new Promise((resolve) => {
      this.open = resolve;
    });
  }

  close(): void {
    this.closed++;
  }

  confirm(): Promise<void> {
    this.open();
    return this.runtime.settle();
  }
}

/** What the backend answers by itself, unless the test wants to. */
const RELEASED: ReleaseReply = { released: true, listeners: 0, published: false, resent: false };
const AUTOMATIC: Partial<Record<Command, (request: never) => unknown>> = {
  release: () => RELEASED,
  removeWaiter: () => undefined,
  refreshWaiters: (waiters: readonly WaiterRef[]) => waiters.map(() => true),
  renew: () => true,
};

/** A backend whose answers and messages come from the test. */
export class ScriptedBackend implements Partial<LockBackend> {
  readonly description = 'scripted';
  readonly synchronizers = undefined;
  connectionError: Error | undefined = undefined;
  line: LockBackend['line'] = undefined;
  blocking: BlockingBackend | undefined = undefined;
  health: SingleNodeWatch | undefined = undefined;
  directory: LockBackend['directory'] = undefined;
  pings = 0;
  readonly requests: Sent<unknown>[] = [];
  readonly heard: Heard[] = [];
  /** Requests whose waiting in the backend was ended. */
  readonly stopped: AcquireRequest[] = [];
  /** Grants with which callers began without asking. */
  readonly begun: Grant[] = [];
  /** Whether all places are kept longer, because they are far back in line. */
  keepsLonger = false;
  /** Whom the next forced release frees the lock from. */
  forced: readonly string[] = [];
  private readonly byTest = new Set<Command>(['acquire', 'transfer']);

  constructor(private readonly runtime: VirtualRuntime) {}

  /** The test answers these commands. */
  hold(...commands: Command[]): void {
    for (const command of commands) this.byTest.add(command);
  }

  /** All requests of this kind so far. */
  sent<C extends Command>(command: C): Sent<Requests[C]>[] {
    return this.requests.filter((sent) => sent.command === command) as Sent<Requests[C]>[];
  }

  /** The latest request of this kind. */
  last<C extends Command>(command: C): Sent<Requests[C]> {
    return this.sent(command).at(-1) as Sent<Requests[C]>;
  }

  count(command: Command): number {
    return this.sent(command).length;
  }

  /** The owners that were named in the requests of this kind. */
  owners(command: 'acquire' | 'release' | 'removeWaiter'): string[] {
    return this.sent(command).map(({ request }) => request.owner);
  }

  /** The open subscriptions. */
  get listening(): Heard[] {
    return this.heard.filter(({ closed }) => closed === 0);
  }

  get types(): string[] {
    return this.listening.map(({ type }) => type);
  }

  /** Sends a message to all that listen for this type. */
  async tell(type: Heard['type'], wake: Wake = { kind: 'message' }): Promise<void> {
    for (const heard of this.listening) if (heard.type === type) heard.listener(wake);
    await this.runtime.settle();
  }

  /** Confirms all subscriptions. */
  async confirm(): Promise<void> {
    for (const heard of this.listening) await heard.confirm();
  }

  /** Lets processes wait in line. */
  withLine(): void {
    this.line = {
      listen: (_key, _clientId, listener) => this.listen('line', listener),
      begun: (grant) => void this.begun.push(grant),
    };
  }

  /** Lets callers wait in the backend. */
  withBlocking(): void {
    this.blocking = {
      refusal: () => undefined,
      acquire: (request, onWait) => this.send('acquire', request, onWait),
      stop: (request) => void this.stopped.push(request),
    };
  }

  /** Reports outages. */
  withHealth(): SingleNodeWatch {
    this.health = new SingleNodeWatch('scripted', this.runtime, async () => void this.pings++);
    return this.health;
  }

  acquire = (request: AcquireRequest) => this.send('acquire', request);
  release = (request: OwnerRef) => this.send('release', request);
  transfer = (request: TransferRequest) => this.send('transfer', request);
  removeWaiter = (request: OwnerRef) => this.send('removeWaiter', request);
  refreshWaiters = (request: readonly WaiterRef[], _timeout: number, keptLonger?: () => void) => {
    if (this.keepsLonger) keptLonger?.();
    return this.send('refreshWaiters', request);
  };
  renew = (request: RenewRequest) => this.send('renew', request);
  subscribe = (_key: string, type: HeldType, _clientId: string, listener: (wake: Wake) => void) =>
    this.listen(type, listener);
  forceRelease = async () => this.forced;
  close = async () => {};

  private listen(type: Heard['type'], listener: (wake: Wake) => void): Heard {
    const heard = new Heard(type, listener, this.runtime);
    this.heard.push(heard);
    return heard;
  }

  private send<C extends Command>(
    command: C,
    request: Requests[C],
    onWait?: (reason: Busy | BackendError) => void,
  ): Promise<never> {
    const sent = new Sent<unknown>(command, request, this.runtime, onWait);
    this.requests.push(sent);
    if (!this.byTest.has(command)) void sent.answer(AUTOMATIC[command]?.(request as never));
    return sent.reply;
  }
}

/** A caller that notes what it got. */
export class TestCaller {
  lease: LockLease | undefined = undefined;
  error: Error | undefined = undefined;

  constructor(acquisition: Promise<LockLease>) {
    acquisition.then(
      (lease) => {
        this.lease = lease;
      },
      (error: Error) => {
        this.error = error;
      },
    );
  }

  /** What the caller got: the name of its error, or `held`; undefined while it waits. */
  get outcome(): string | undefined {
    return this.lease === undefined ? this.error?.name : 'held';
  }
}

/** What callers ask for: a type of lock, or to be the only one that waits. */
export type Wanted = HeldType | 'newest';

interface SceneSettings extends Partial<Pick<EngineSettings, 'warnsOfUnlimitedWaits' | 'identity'>> {
  readonly health?: boolean;
  readonly lines?: boolean;
  readonly blocking?: boolean;
}

/** An engine on a {@link ScriptedBackend}. Its callers want the lock `order`. */
export function lockScene(
  wanted: Wanted = 'reentrant',
  { health = false, lines = false, blocking = false, ...settings }: SceneSettings = {},
) {
  const runtime = new VirtualRuntime();
  const logger = new RecordingLogger();
  const backend = new ScriptedBackend(runtime);
  if (health) backend.withHealth();
  if (lines) backend.withLine();
  if (blocking) backend.withBlocking();
  const engine = new LockEngine({
    ...ENGINE_DEFAULTS,
    backend: backend as unknown as LockBackend,
    runtime,
    logger,
    clientId: 'me',
    watchdogTimeout: ms(30_000),
    waiterTimeout: ms(WAITER_TIMEOUT),
    shutdownTimeout: ms(100),
    ...settings,
  });
  /** Releases the lock by force. The backend says that these owners had it. */
  const force = async (...owners: string[]) => {
    backend.forced = owners;
    await engine.inspector.forceRelease('order');
  };
  const termsOf = (options: Partial<AcquisitionTerms>): AcquisitionTerms => ({
    ...DEFAULT_TERMS,
    type: wanted === 'newest' ? 'reentrant' : wanted,
    newest: wanted === 'newest',
    permits: wanted === 'permits' ? 2 : undefined,
    waitTime: FOREVER,
    outageTimeout: FOREVER,
    leaseTime: ms(30_000),
    onLost: 'throw',
    release: 'confirmed',
    ...options,
  });
  /** A caller that waits from now on. */
  const arrive = (options: Partial<AcquisitionTerms> = {}) =>
    new TestCaller(engine.acquireUnder('order', termsOf(options), 'acquire()'));
  /** A caller that waits, and a function with which it leaves. */
  const guest = (options: Partial<AcquisitionTerms> = {}) => {
    const abort = new AbortController();
    const caller = arrive({ ...options, signal: abort.signal });
    return { caller, leave: () => abort.abort() };
  };
  const trier = (options: Partial<AcquisitionTerms> = {}) => arrive({ ...options, waitTime: 0 as Milliseconds });
  /** Whether nobody holds the lock or waits for it, and nothing is under way for it. */
  const isIdle = () => engine.activity().queues === 0;
  return { runtime, logger, backend, engine, force, arrive, guest, trier, isIdle };
}

export type Scene = ReturnType<typeof lockScene>;

/** A lock that this process holds. */
export const held = async (...settings: Parameters<typeof lockScene>) => {
  const scene = lockScene(...settings);
  const holder = scene.arrive();
  await scene.backend.last('acquire').grant();
  return { ...scene, holder, lease: leaseOf(holder) };
};

/** A caller that rests, because another process holds the lock. */
export const resting = async (...settings: Parameters<typeof lockScene>) => {
  const scene = lockScene(...settings);
  const caller = scene.arrive();
  await scene.backend.last('acquire').busy();
  return { ...scene, caller };
};

/** A caller that has a place in line, and rests. */
export async function inLine(wanted: Wanted = 'reentrant', options: Partial<AcquisitionTerms> = {}) {
  const scene = lockScene(wanted, { lines: true });
  const caller = scene.arrive(options);
  await scene.backend.last('acquire').busy();
  await scene.backend.confirm();
  const placed = scene.backend.last('acquire');
  await placed.busy();
  return { ...scene, caller, placed };
}

type GrantMessage = Extract<Wake, { kind: 'message' }>;

/** The message of a release that grants the lock to a place, with what its request asked for. */
export function grantTo({ request }: Sent, grant: Partial<Grant> = {}): GrantMessage {
  const { owner, nonce = '', grantLease = 0 } = request;
  return {
    kind: 'message',
    owner,
    lock: 'granted',
    grant: { nonce, token: 5, reserved: 3, after: 0, lease: grantLease, ...grant },
  };
}

/** The lease of a caller that holds the lock. */
export const leaseOf = ({ lease }: TestCaller): LockLease => lease as LockLease;
