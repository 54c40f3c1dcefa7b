import { BackendError, because, type LockBackend, type NodeHealth, withReason } from '../../backends/lock-backend.js';
import { deadlineTimer, type Runtime, type Timer } from '../../backends/runtime.js';
import { LockUnavailableError } from '../errors.js';
import type { EventHub } from '../events/event-hub.js';
import type { Caller } from './caller.js';
import { notServedError } from './wait-errors.js';

/**
 * The shortest time between two searches for overdue callers, in milliseconds. It is limited because each search visits
 * all waiting callers.
 */
const SHORTEST_PAUSE = 20;
/** The shortest time between two log lines about the same node, in milliseconds, however often it comes and goes. */
const QUIET_TIME = 10_000;
/**
 * A node that gave no answer during a whole wait counts as silent if the wait lasted at least this many milliseconds,
 * and if the request that is unanswered was sent at least as long ago.
 */
export const SILENCE = 100;

/** Callers that wait for the same keys. */
export interface WaitingQueue {
  /** The awaited key, or keys. */
  readonly keys: readonly string[];
  /** Refuses each caller for which there is an error. */
  refuseWhere(errorOf: (caller: Caller<never>) => Error | undefined): void;
}

/** All queues in which callers of a service wait. */
export interface WaitingQueues {
  readonly isEmpty: boolean;
  /** Queues may come and go during the iteration. */
  forEach(visit: (queue: WaitingQueue) => void): void;
}

/**
 * Limits how long the callers of one service wait while the backend does not answer. The backend knows which node does
 * not answer, and since when (see {@link NodeHealth}). This class searches all waiting callers for those whose
 * `outageTimeout` has ended. While there is no outage, callers cost nothing here. `ping-while-waiting.ts` makes sure
 * that an outage is noticed.
 */
export class OutageLimit {
  /**
   * Whether a node does not answer, so that new callers have to be recorded. This is a field because each acquisition
   * reads it.
   */
  active = false;
  /** The nodes that do not answer, and since when. */
  private readonly away = new Map<NodeHealth, number>();
  private readonly lines = new WeakMap<NodeHealth, OutageLine>();
  private searchTimer: Timer | undefined;
  private nextSearch = Number.POSITIVE_INFINITY;
  private closed = false;

  constructor(
    private readonly backend: LockBackend,
    private readonly runtime: Runtime,
    private readonly events: EventHub,
    private readonly queues: WaitingQueues,
    /** Called when the outage of a node has ended, which began at `since`. */
    private readonly onEnd: (since: number) => void = () => {},
  ) {
    backend.health?.listen((node) => this.changed(node));
  }

  /**
   * Records a caller that arrives during an outage.
   *
   * @returns the error if the caller is refused at once, because it tries only once and there is no connection
   */
  arrived(caller: Caller<never>, keys: readonly string[]): LockUnavailableError | undefined {
    const since = this.since(keys);
    if (since === undefined) return undefined;
    if (caller.triesOnce && this.backend.connectionError !== undefined) {
      // Only an answer ends an outage, and no other caller may be sending requests.
      this.backend.health?.ping(keys);
      return this.refusal(caller, keys);
    }
    caller.calledAt = this.runtime.monotonic();
    if (!caller.triesOnce) this.searchFor(caller, caller.calledAt + caller.terms.outageTimeout);
    return undefined;
  }

  /** Cancels the search when no caller waits any more. */
  left(): void {
    if (this.searchTimer !== undefined && this.queues.isEmpty) this.cancelSearch();
  }

  /**
   * Whether a caller whose time has ended gets `unavailable` for these keys instead of `busy`. It does if a node does
   * not answer, or has not answered since the caller began to wait. (A wait shorter than a round trip on a healthy
   * connection proves nothing.)
   *
   * @param asked whether a request about the keys is unanswered
   * @param askedAt when it was sent. A caller that rests for most of its wait asks again shortly before its end
   */
  isSilent(
    caller: Caller<never>,
    keys: readonly string[],
    asked: boolean,
    askedAt = Number.NEGATIVE_INFINITY,
  ): boolean {
    if (this.since(keys) !== undefined) return true;
    const { calledFor, terms } = caller;
    const { connectionError, health } = this.backend;
    // Not `calledFor`, which is also long if this process was suspended.
    const isShort = terms.waitTime < SILENCE && connectionError === undefined;
    const now = this.runtime.monotonic();
    const isNew = now - askedAt < SILENCE && connectionError === undefined;
    if (!asked || calledFor === 0 || isShort || isNew) return false;
    const begin = now - calledFor;
    return health !== undefined && keys.some((key) => health.node(key).answeredAt < begin);
  }

  /** Whether the outage of this key's node has lasted for `outageTimeout`, for a call that began at `calledAt`. */
  isOver(key: string, calledAt: number, outageTimeout: number): boolean {
    const since = this.since([key]);
    return since !== undefined && this.runtime.monotonic() - Math.max(since, calledAt) >= outageTimeout;
  }

  /** Why these keys get no answer. Undefined if their nodes answer, as far as is known. */
  failure(keys: readonly string[]): BackendError | undefined {
    const node = this.nodeAway(keys);
    if (node?.since === undefined) return undefined;
    const time = Math.round(this.runtime.monotonic() - node.since);
    const reason = this.backend.connectionError === undefined ? node.reason : undefined;
    const message = because(`${node.description}: no usable answer for ${time} ms`, reason);
    return withReason(this.backend, new BackendError(message, 'unavailable', 'unknown'));
  }

  /**
   * Reports a failure after which callers continue to wait. For a backend that reports outages it does nothing, because
   * one log line covers all failures of an outage.
   */
  attemptFailed(error: () => Error): void {
    if (this.backend.health === undefined) this.events.emit('error', error());
  }

  close(): void {
    this.closed = true;
    this.searchTimer?.cancel();
  }

  private changed(node: NodeHealth): void {
    const since = this.away.get(node);
    if (node.since !== undefined) this.away.set(node, node.since);
    else this.away.delete(node);
    this.active = this.away.size > 0;
    if (node.since === undefined && since !== undefined) {
      this.writeEnd(node);
      this.onEnd(since);
    }
    // Not immediately, because the backend is about to reject the requests of the callers.
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

  /** The error for a caller that stops waiting for the outage to end (see {@link isOver}), or does not wait. */
  refusal(caller: Caller<never> & { readonly notServed?: string }, keys: readonly string[]): LockUnavailableError {
    const cause = this.failure(keys) as BackendError;
    if (caller.triesOnce) return notServedError(caller, cause);
    const { what, name } = caller;
    return new LockUnavailableError(`Gave up waiting for ${what}: ${cause.message}`, name, { cause });
  }

  /** Schedules a search for the time when a caller has to be refused, unless its own waitTime ends before that. */
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

  /** Refuses all callers whose `outageTimeout` has ended. */
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
        const ends = caller.triesOnce ? Number.POSITIVE_INFINITY : now + caller.remainingWait;
        const own: Crowd = {
          waiting: 1,
          until: Math.min(ends, due),
          limit: ends < due ? 'waitTime' : 'outageTimeout',
          example: caller,
        };
        const crowd = crowds.get(node);
        crowds.set(node, crowd === undefined ? own : together(crowd, own));
        return undefined;
      });
    });
    for (const [node, crowd] of crowds) this.writeLine(node, crowd, now);
  }

  /** Reports each outage once, as soon as a caller waits for it to end. */
  private writeLine(node: NodeHealth, { waiting, until, limit, example }: Crowd, now: number): void {
    const since = node.since as number;
    const line = this.lines.get(node);
    if (line !== undefined && (line.since === since || now - line.at < QUIET_TIME)) return;
    const { connectionError } = this.backend;
    const refuses = connectionError === undefined && node.refuses;
    this.lines.set(node, { at: now, since, ended: refuses ? 'takes locks' : 'answers' });
    const who =
      waiting === 1 ? `A caller waits for ${example.what}` : `${waiting} callers wait, one of them for ${example.what}`;
    const first = waiting === 1 ? 'it gets' : 'the first of them gets';
    const reason = connectionError?.message ?? node.reason;
    const fault = refuses ? 'refuses to take locks' : 'does not answer';
    const cause = new BackendError(`${node.description} ${fault}`, 'unavailable', 'unknown');
    const condition = refuses ? 'If it still refuses at' : 'If there is no answer by';
    const end = Number.isFinite(until)
      ? `${condition} ${this.timeOfDay(until - now)}, ${first} LockUnavailableError (${limit})`
      : `${waiting === 1 ? 'It waits' : 'They wait'} until ${refuses ? 'it takes locks' : 'there is an answer'} (outageTimeout: Infinity)`;
    const message = `${because(cause.message, reason)}. ${who}. ${end}`;
    this.events.emit(
      'error',
      new LockUnavailableError(message, example.name, { cause: withReason(this.backend, cause) }),
    );
  }

  /** Reports the end of an outage that was reported. */
  private writeEnd(node: NodeHealth): void {
    const line = this.lines.get(node);
    if (line?.ended === undefined || this.closed) return;
    this.lines.set(node, { ...line, ended: undefined });
    const seconds = ((this.runtime.monotonic() - line.since) / 1_000).toFixed(1);
    this.events.logger.log?.(`${node.description} ${line.ended} again, after ${seconds} s`);
  }

  private timeOfDay(fromNow: number): string {
    return new Date(this.runtime.wall() + fromNow).toISOString().slice(11, 19).concat(' UTC');
  }
}

/** The last log line about an outage of a node. */
interface OutageLine {
  /** When it was written, on the monotonic clock. */
  readonly at: number;
  /** When the outage began. */
  readonly since: number;
  /** What the node does again when the outage has ended, until that was reported. */
  readonly ended: 'answers' | 'takes locks' | undefined;
}

/** The callers that wait for one node. */
interface Crowd {
  readonly waiting: number;
  /** When the first of them is refused, on the monotonic clock. */
  readonly until: number;
  /** The option that refuses the first of them. */
  readonly limit: 'outageTimeout' | 'waitTime';
  /** One of them. */
  readonly example: Pick<Caller<never>, 'what' | 'name'>;
}

function together(crowd: Crowd, other: Crowd): Crowd {
  const { until, limit } = other.until < crowd.until ? other : crowd;
  return { ...crowd, waiting: crowd.waiting + other.waiting, until, limit };
}
