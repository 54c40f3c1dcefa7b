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
import type { HeldLock } from '../../../lib/engine/hold/held-lock.js';
import { FairQueue } from '../../../lib/engine/queue/fair-queue.js';
import { LockQueue } from '../../../lib/engine/queue/lock-queue.js';
import type { LocalQueue, QueueKind } from '../../../lib/engine/queue-table.js';
import { type EngineSettings, Services } from '../../../lib/engine/services.js';
import { FOREVER, type Milliseconds } from '../../../lib/engine/terms/duration.js';
import { type AcquisitionTerms, DEFAULT_TERMS } from '../../../lib/engine/terms/lock-options.js';
import { Waiter } from '../../../lib/engine/wait/waiter.js';
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
  refreshWaiters = (request: readonly WaiterRef[]) => this.send('refreshWaiters', request);
  renew = (request: RenewRequest) => this.send('renew', request);
  subscribe = (_key: string, type: HeldType, _clientId: string, listener: (wake: Wake) => void) =>
    this.listen(type, listener);
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
export class TestWaiter extends Waiter<HeldLock> {
  held: HeldLock | undefined = undefined;
  error: Error | undefined = undefined;

  /** What the caller got: the name of its error, or `held`; undefined while it waits. */
  get outcome(): string | undefined {
    return this.held === undefined ? this.error?.name : 'held';
  }
}

interface SceneSettings extends Partial<Pick<EngineSettings, 'warnsOfUnlimitedWaits' | 'identity'>> {
  readonly health?: boolean;
  readonly lines?: boolean;
  readonly blocking?: boolean;
}

/** One queue, with the real services of an engine around it, on a {@link ScriptedBackend}. */
function sceneOf<Queue extends LocalQueue>(
  { health = false, lines = false, blocking = false, ...settings }: SceneSettings,
  create: (services: Services, name: string, key: string, onIdle: (queue: LocalQueue) => void) => Queue,
) {
  const runtime = new VirtualRuntime();
  const logger = new RecordingLogger();
  const backend = new ScriptedBackend(runtime);
  if (health) backend.withHealth();
  if (lines) backend.withLine();
  if (blocking) backend.withBlocking();
  const services = new Services({
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
  /** How often the queue has reported that it is idle. */
  const ends = { count: 0 };
  const queue = create(services, 'order', KEY, (ended) => {
    ends.count++;
    services.work.queues.remove(ended);
  });
  services.work.queues.add(queue);
  const termsOf = (options: Partial<AcquisitionTerms>): AcquisitionTerms => ({
    ...DEFAULT_TERMS,
    type: queue.kind === 'newest' ? 'reentrant' : queue.kind,
    permits: undefined,
    waitTime: FOREVER,
    outageTimeout: FOREVER,
    leaseTime: ms(30_000),
    onLost: 'throw',
    release: 'confirmed',
    ...options,
  });
  /** A caller that has not arrived yet. */
  const caller = (options: Partial<AcquisitionTerms> = {}): TestWaiter => {
    const waiter: TestWaiter = new TestWaiter(
      'order',
      services.newOwner,
      termsOf(options),
      runtime,
      (held) => {
        waiter.held = held;
      },
      (error) => {
        waiter.error = error;
      },
    );
    return waiter;
  };
  return { runtime, logger, backend, services, queue, ends, termsOf, caller };
}

export function fairScene(settings: SceneSettings = {}) {
  const scene = sceneOf(settings, (services, name, key, onIdle) => new FairQueue(services, name, key, onIdle));
  return { ...scene, ...arrivals(scene) };
}

export function lockScene(kind: QueueKind = 'reentrant', settings: SceneSettings = {}) {
  const scene = sceneOf(settings, (services, name, key, onIdle) => new LockQueue(services, name, key, kind, onIdle));
  return { ...scene, ...arrivals(scene) };
}

/** A queue with one caller, which has a place in line, and rests. */
export async function inLine(type: QueueKind = 'reentrant', options: Partial<AcquisitionTerms> = {}) {
  const scene = lockScene(type, { lines: true });
  const waiter = scene.arrive(options);
  await scene.backend.last('acquire').busy();
  await scene.backend.confirm();
  const placed = scene.backend.last('acquire');
  await placed.busy();
  return { ...scene, waiter, placed };
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

/** The lock of a caller that holds it. */
export const lockOf = ({ held }: TestWaiter): HeldLock => held as HeldLock;

interface Arrivable {
  readonly queue: { enqueue(waiter: TestWaiter): void };
  caller(options: Partial<AcquisitionTerms>): TestWaiter;
}

function arrivals({ queue, caller }: Arrivable) {
  /** A caller that waits from now on. */
  const arrive = (options: Partial<AcquisitionTerms> = {}): TestWaiter => {
    const waiter = caller(options);
    queue.enqueue(waiter);
    return waiter;
  };
  /** A caller that waits, and a function with which it leaves. */
  const guest = (options: Partial<AcquisitionTerms> = {}) => {
    const abort = new AbortController();
    const waiter = arrive({ ...options, signal: abort.signal });
    return { waiter, leave: () => abort.abort() };
  };
  const trier = (options: Partial<AcquisitionTerms> = {}) => arrive({ ...options, waitTime: 0 as Milliseconds });
  return { arrive, guest, trier };
}
