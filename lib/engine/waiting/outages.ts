import { BackendError, type LockBackend, type NodeHealth, withReason } from '../../backends/lock-backend.js';
import { deadlineTimer, type Runtime, type Timer } from '../../backends/runtime.js';
import { LockUnavailableError } from '../errors.js';
import type { EventHub } from '../events/events.js';
import type { Caller } from './waiter.js';

/** How often a node on which somebody waits is asked for a sign of life, in milliseconds. */
const PING_INTERVAL = 3_000;
/**
 * The shortest time between two searches for overdue callers, in milliseconds: each search visits all waiting callers.
 */
const SHORTEST_PAUSE = 20;
/** The log has at most one line per node within this many milliseconds, however often the node comes and goes. */
const QUIET_TIME = 10_000;
/** A node counts as silent if it sent nothing during the whole wait, and for at least this many milliseconds. */
const SILENCE = 100;

/** Callers that wait for one thing. */
export interface WaitingQueue {
  /** What they wait for: one key, or several. */
  readonly keys: readonly string[];
  /** Refuses each caller for which there is an error. */
  refuseWhere(errorOf: (caller: Caller<never>) => Error | undefined): void;
}

/** Callers that may rest until something is heard of what they wait for. */
export interface RestingCallers {
  /** They rest. Only {@link Outages} sets it. */
  resting: boolean;
}

/** All queues in which callers of a service wait. */
export interface WaitingQueues {
  readonly isEmpty: boolean;
  /** Queues may come and go meanwhile. */
  forEach(show: (queue: WaitingQueue) => void): void;
}

/**
 * How long the callers of one service wait while the backend does not answer. Which node is away, and since when, is
 * known to the backend (see {@link NodeHealth}); this class has one search for all callers whose `outageTimeout` is
 * over, whatever they wait for, and sees to it that an outage is noticed although everybody rests. Nothing is done here
 * for a caller that meets no outage.
 */
export class Outages {
  /** A node is away: who calls now has to be noted. A field, because each acquisition reads it. */
  active = false;
  private readonly away = new Set<NodeHealth>();
  private readonly lines = new WeakMap<NodeHealth, { readonly at: number; readonly since: number }>();
  /** How many queues have callers that rest. */
  private resting = 0;
  private pingTimer: Timer | undefined;
  private searchTimer: Timer | undefined;
  private nextSearch = Number.POSITIVE_INFINITY;
  private closed = false;

  constructor(
    private readonly backend: LockBackend,
    private readonly runtime: Runtime,
    private readonly events: EventHub,
    private readonly queues: WaitingQueues,
  ) {
    backend.health?.listen((node) => this.changed(node));
  }

  /**
   * Notes a caller that comes while a node is away.
   *
   * @returns why it is refused at once, if it is: it tries once, and there is no connection by which it could
   */
  arrived(caller: Caller<never>, keys: readonly string[]): LockUnavailableError | undefined {
    const since = this.since(keys);
    if (since === undefined) return undefined;
    if (caller.triesOnce && this.backend.connectionError !== undefined) {
      // Nobody else may ask, and only an answer ends an outage.
      this.backend.health?.ping(keys);
      return this.refusal(caller, keys);
    }
    caller.calledAt = this.runtime.monotonic();
    if (!caller.triesOnce) this.searchFor(caller, caller.calledAt + caller.terms.outageTimeout);
    return undefined;
  }

  /** These callers rest, until {@link unrest}: the node that they wait for is asked for a sign of life now and then. */
  rest(callers: RestingCallers): void {
    if (callers.resting) return;
    callers.resting = true;
    this.resting++;
    this.schedulePing();
  }

  /** None of these callers waits any more. */
  unrest(callers: RestingCallers): void {
    if (!callers.resting) return;
    callers.resting = false;
    this.resting--;
    if (this.resting > 0) return;
    this.pingTimer?.cancel();
    this.pingTimer = undefined;
  }

  /** Callers have left. */
  left(): void {
    if (this.searchTimer !== undefined && this.queues.isEmpty) this.cancelSearch();
  }

  /**
   * Whether a caller whose time is over gets `unavailable` for these keys, not `busy`: a node is away, or has answered
   * nothing since the caller began to wait. (A wait that is shorter than a round trip on a healthy connection proves
   * nothing.)
   *
   * @param asked an answer about the keys is due
   */
  isSilent(caller: Caller<never>, keys: readonly string[], asked: boolean): boolean {
    if (this.since(keys) !== undefined) return true;
    const { calledFor, terms } = caller;
    const { connectionError, health } = this.backend;
    // Not `calledFor`: it is long, too, where this process has slept.
    const isShort = terms.waitTime < SILENCE && connectionError === undefined;
    if (!asked || calledFor === 0 || isShort) return false;
    const begin = this.runtime.monotonic() - calledFor;
    return health !== undefined && keys.some((key) => health.node(key).answeredAt < begin);
  }

  /** Whether the outage of this key's node has lasted, for a call that began at `calledAt`, for `outageTimeout`. */
  isOver(key: string, calledAt: number, outageTimeout: number): boolean {
    const since = this.since([key]);
    return since !== undefined && this.runtime.monotonic() - Math.max(since, calledAt) >= outageTimeout;
  }

  /** Why there is no answer about these keys; undefined: their nodes answer, as far as is known. */
  failure(keys: readonly string[]): BackendError | undefined {
    const node = this.nodeAway(keys);
    if (node?.since === undefined) return undefined;
    const time = Math.round(this.runtime.monotonic() - node.since);
    const message = `${node.description}: no usable answer for ${time} ms`;
    return withReason(this.backend, new BackendError(message, 'unavailable', 'unknown'));
  }

  /** Callers keep waiting after a failure. If the backend reports outages, one line in the log covers all of them. */
  attemptFailed(error: () => Error): void {
    if (this.backend.health === undefined) this.events.emit('error', error());
  }

  close(): void {
    this.closed = true;
    this.pingTimer?.cancel();
    this.searchTimer?.cancel();
  }

  private changed(node: NodeHealth): void {
    if (node.since === undefined) this.away.delete(node);
    else this.away.add(node);
    this.active = this.away.size > 0;
    // Later: the backend is about to say to callers what has failed.
    if (node.since !== undefined) this.runtime.nextTurn(() => this.search());
    else if (!this.active) this.cancelSearch();
  }

  private nodeAway(keys: readonly string[]): NodeHealth | undefined {
    const { health } = this.backend;
    if (!this.active || health === undefined) return undefined;
    let first: NodeHealth | undefined;
    for (const key of keys) {
      const node = health.node(key);
      if (node.since !== undefined && (first?.since === undefined || node.since < first.since)) first = node;
    }
    return first;
  }

  private since(keys: readonly string[]): number | undefined {
    return this.nodeAway(keys)?.since;
  }

  /** The error for a caller that does not wait for the end of the outage any more: see {@link isOver}. */
  refusal(caller: Caller<never>, keys: readonly string[]): LockUnavailableError {
    const cause = this.failure(keys) as BackendError;
    const { what, name } = caller;
    return new LockUnavailableError(`Gave up waiting for ${what}: ${cause.message}`, name, { cause });
  }

  /** A caller is to be refused at this time, unless its own time is over before. */
  private searchFor(caller: Caller<never>, time: number): void {
    const delay = time - this.runtime.monotonic();
    if (this.closed || time >= this.nextSearch || caller.remainingWait <= delay) return;
    this.cancelSearch();
    this.nextSearch = time;
    this.searchTimer = deadlineTimer(this.runtime, Math.max(delay, SHORTEST_PAUSE), () => this.search());
  }

  private cancelSearch(): void {
    this.searchTimer?.cancel();
    this.searchTimer = undefined;
    this.nextSearch = Number.POSITIVE_INFINITY;
  }

  /** Refuses all callers whose `outageTimeout` is over. */
  private search(): void {
    this.cancelSearch();
    if (this.closed) return;
    const now = this.runtime.monotonic();
    const crowds = new Map<NodeHealth, Crowd>();
    this.queues.forEach((queue) => {
      const node = this.nodeAway(queue.keys);
      const since = node?.since;
      if (node === undefined || since === undefined) return;
      queue.refuseWhere((caller) => {
        const due = Math.max(since, caller.calledAt) + caller.terms.outageTimeout;
        if (due <= now) return this.refusal(caller, queue.keys);
        this.searchFor(caller, due);
        const crowd = crowds.get(node) ?? { waiting: 0, until: due, example: caller };
        crowds.set(node, { ...crowd, waiting: crowd.waiting + 1, until: Math.min(crowd.until, due) });
        return undefined;
      });
    });
    for (const [node, crowd] of crowds) this.writeLine(node, crowd, now);
  }

  /** Logs one line for each outage, as soon as a caller waits for its end. */
  private writeLine(node: NodeHealth, { waiting, until, example }: Crowd, now: number): void {
    const since = node.since as number;
    const line = this.lines.get(node);
    if (line !== undefined && (line.since === since || now - line.at < QUIET_TIME)) return;
    this.lines.set(node, { at: now, since });
    const who =
      waiting === 1 ? `A caller waits for ${example.what}` : `${waiting} callers wait, one for ${example.what}`;
    const first = waiting === 1 ? 'it gets' : 'the first of them gets';
    const limit = Number.isFinite(until)
      ? `if it does not answer until ${this.timeOfDay(until - now)}, ${first} LockUnavailableError (outageTimeout)`
      : 'for as long as that lasts (outageTimeout: Infinity)';
    const reason = this.backend.connectionError?.message;
    const cause = new BackendError(`${node.description} does not answer`, 'unavailable', 'unknown');
    const message = `${cause.message}${reason === undefined ? '' : ` (${reason})`}. ${who}: ${limit}`;
    this.events.emit(
      'error',
      new LockUnavailableError(message, example.name, { cause: withReason(this.backend, cause) }),
    );
  }

  private timeOfDay(fromNow: number): string {
    return new Date(this.runtime.wall() + fromNow).toISOString().slice(11, 19).concat(' UTC');
  }

  private schedulePing(): void {
    const { health } = this.backend;
    if (health === undefined || this.closed) return;
    this.pingTimer ??= this.runtime.timer(PING_INTERVAL, () => {
      this.pingTimer = undefined;
      const keys = new Set<string>();
      this.queues.forEach((queue) => {
        for (const key of queue.keys) keys.add(key);
      });
      if (keys.size > 0) health.ping(keys);
      if (this.resting > 0) this.schedulePing();
    });
  }
}

/** The callers that wait for one node. */
interface Crowd {
  readonly waiting: number;
  /** When the first of them is refused, on the monotonic clock. */
  readonly until: number;
  /** One of them. */
  readonly example: Pick<Caller<never>, 'what' | 'name'>;
}
