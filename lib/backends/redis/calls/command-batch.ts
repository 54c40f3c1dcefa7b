import type { BackendError } from '../../lock-backend.js';
import { answerTimer, type Runtime, type Timer } from '../../runtime.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { slotOf } from '../hash-slot.js';
import { BatchCall, type BatchCallOwner, BatchedRequest, Dispatch } from './batch-call.js';
import type { Batchable, BatchedScript } from './batched-script.js';
import { closedError, timeoutError } from './call-errors.js';
import { nextTick } from './end-of-tick.js';

/** The most requests in one script call. A larger batch would block other clients for too long. */
const LARGEST_BATCH = 128;
const SMALLEST_FULL_BATCH = 32;
/** One batch that the server executes, and one that it can start next. */
const MAX_DISPATCHES = 2;

/**
 * The requests of one command to one node. Similar requests made in the same tick, for the same slot, are sent in one
 * script call. At most two such batches are in flight, and later requests wait for the next one. Each request is
 * answered separately, within the command timeout.
 */
export class CommandBatch<Request extends Batchable, Reply> implements BatchCallOwner<Request, Reply> {
  private queue: BatchedRequest<Request, Reply>[] = [];
  private readonly calls: BatchCall<Request, Reply>[] = [];
  /** The latest call, as an example of its class: see docs/internals/decisions/classes-on-the-hot-path.md. */
  latest: BatchCall<Request, Reply> | undefined = undefined;
  private dispatches = 0;
  /** Requests without an answer. */
  private pending = 0;
  private flushScheduled = false;
  /** How many requests at the end of the queue were made in this tick. */
  private fresh = 0;
  private timer: Timer | undefined;
  private closed = false;

  constructor(
    private readonly command: BatchedScript<Request, Reply>,
    readonly connection: RedisConnection,
    private readonly runtime: Runtime,
    readonly commandTimeout: number,
  ) {}

  call(request: Request): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.closed) return reject(closedError(this.connection));
      this.queue.push(new BatchedRequest(request, resolve, reject));
      request.queued?.();
      this.fresh++;
      this.pending++;
      this.connection.requestAdded();
      this.timer ??= this.startTimer(this.runtime.monotonic() + this.commandTimeout);
      if (this.queue.length >= LARGEST_BATCH && this.dispatches < MAX_DISPATCHES) this.runtime.detached(this.flush);
      else this.scheduleFlush();
    });
  }

  /** Rejects all requests that have no answer. */
  close(): void {
    this.closed = true;
    this.fresh = 0;
    this.timer?.cancel();
    const sent = this.calls.splice(0).flatMap(({ items }) => items);
    for (const item of [...sent, ...this.queue.splice(0)]) this.reject(item, closedError(this.connection));
  }

  resolve(item: BatchedRequest<Request, Reply>, reply: Reply): void {
    this.settle(item);
    item.resolve(reply);
  }

  reject(item: BatchedRequest<Request, Reply>, error: BackendError): void {
    if (item.settled) return;
    item.request.leavesQueue?.();
    this.settle(item);
    item.reject(error);
  }

  sendAlone(dispatch: Dispatch, item: BatchedRequest<Request, Reply>): void {
    this.send(dispatch, [item]);
  }

  callEnded(call: BatchCall<Request, Reply>): void {
    const at = this.calls.indexOf(call);
    if (at < 0) return;
    this.calls.splice(at, 1);
    if (--call.dispatch.pending > 0) return;
    this.dispatches--;
    if (this.queue.length > 0) this.scheduleFlush();
  }

  /** Flushes after the current code and the promise callbacks that it triggers, because they make more requests. */
  private scheduleFlush(): void {
    if (this.flushScheduled) return;
    this.flushScheduled = true;
    this.runtime.detached(this.flushInNextTick);
  }

  private readonly flushInNextTick = (): void => nextTick(this.flush);

  private readonly flush = (): void => {
    this.flushScheduled = false;
    this.setDeadlines();
    while (this.queue.length > 0 && this.dispatches < MAX_DISPATCHES) this.dispatch(this.nextItems());
  };

  /**
   * Requests of one tick share a deadline, counted from the end of the tick, because nothing is sent or
   * answered during the tick.
   */
  private setDeadlines(): void {
    if (this.fresh === 0) return;
    const deadline = this.runtime.monotonic() + this.commandTimeout;
    for (let i = this.queue.length - this.fresh; i < this.queue.length; i++) this.queue[i].deadline = deadline;
    this.fresh = 0;
  }

  private nextItems(): BatchedRequest<Request, Reply>[] {
    const full = this.fullBatch();
    if (this.queue.length > full) return this.queue.splice(0, full);
    const items = this.queue;
    this.queue = [];
    return items;
  }

  /**
   * Half of all pending requests, acquisitions and releases together, so that the server works on one half while this
   * process works on the other.
   */
  private fullBatch(): number {
    const half = Math.ceil(this.connection.pendingRequests / 2);
    return Math.min(LARGEST_BATCH, Math.max(SMALLEST_FULL_BATCH, half));
  }

  private dispatch(queued: BatchedRequest<Request, Reply>[]): void {
    const items = this.command.unsentReply === undefined ? queued : this.notWithdrawn(queued, this.command.unsentReply);
    if (items.length === 0) return;
    const groups = groupRequests(items, this.command, this.connection.isCluster);
    const dispatch = new Dispatch();
    this.dispatches++;
    for (const group of groups) this.send(dispatch, group);
  }

  /** Leaves out withdrawn requests. The others can no longer be withdrawn. */
  private notWithdrawn(items: BatchedRequest<Request, Reply>[], unsentReply: Reply): BatchedRequest<Request, Reply>[] {
    let withdrawn: Set<unknown> | undefined;
    for (const item of items) {
      if (item.request.leavesQueue?.() !== false) continue;
      withdrawn ??= new Set();
      withdrawn.add(item);
      this.resolve(item, unsentReply);
    }
    return withdrawn === undefined ? items : items.filter((item) => !withdrawn.has(item));
  }

  private send(dispatch: Dispatch, items: readonly BatchedRequest<Request, Reply>[]): void {
    const call = new BatchCall(this, this.command, items, dispatch);
    dispatch.pending++;
    this.calls.push(call);
    this.latest = call;
    call.send();
  }

  /** One timer is enough, because requests are in the order of their deadlines. */
  private startTimer(due: number): Timer {
    return answerTimer(this.runtime, due, (moment) => this.rejectOverdue(moment), 'keep-alive');
  }

  /**
   * Rejects the requests whose deadline was at or before `moment`. The event loop may have been blocked since then, so
   * requests with later deadlines are kept.
   */
  private rejectOverdue(moment: number): void {
    for (const call of [...this.calls]) call.expire(moment);
    this.extendQueue();
    const first = this.queue.findIndex(({ deadline }) => deadline > moment);
    for (const item of this.queue.splice(0, first < 0 ? this.queue.length : first)) {
      const { reason } = this.connection.health.node(item.request.key);
      this.reject(item, timeoutError(this.connection, this.commandTimeout, 'refused', reason, undefined, false));
    }
    this.timer = this.pending > 0 ? this.startTimer(this.earliestDeadline()) : undefined;
  }

  /** Requests that take something and have to wait for the second try of others wait as long as those. */
  private extendQueue(): void {
    if (!this.command.limited) return;
    const until = Math.max(0, ...this.calls.map(({ extendedUntil }) => extendedUntil));
    for (const item of this.queue) item.deadline = Math.max(item.deadline, until);
  }

  private earliestDeadline(): number {
    const sent = this.calls.flatMap(({ items }) => items);
    const pending = [...sent, ...this.queue.slice(0, 1)].filter(({ settled }) => !settled);
    return Math.min(...pending.map(({ deadline }) => deadline));
  }

  private settle(item: BatchedRequest<Request, Reply>): void {
    item.settled = true;
    this.pending--;
    this.connection.requestSettled();
  }
}

/** Groups requests that can share a script call: they must be alike and, in a cluster, belong to the same slot. */
function groupRequests<Request extends Batchable, Reply>(
  items: BatchedRequest<Request, Reply>[],
  command: BatchedScript<Request, Reply>,
  isCluster: boolean,
): BatchedRequest<Request, Reply>[][] {
  if (items.length === 1) return [items];
  const groups: BatchedRequest<Request, Reply>[][] = [];
  const slots: (number | undefined)[] = [];
  for (const item of items) {
    const slot = isCluster ? slotOf(item.request.key) : undefined;
    let match = 0;
    while (match < groups.length && !(slots[match] === slot && command.alike(groups[match][0].request, item.request))) {
      match++;
    }
    if (match < groups.length) groups[match].push(item);
    else slots[groups.push([item]) - 1] = slot;
  }
  return groups;
}
