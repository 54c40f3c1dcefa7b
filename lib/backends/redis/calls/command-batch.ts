import { BackendError } from '../../lock-backend.js';
import { deadlineTimer, type Runtime, type Timer } from '../../runtime.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { callError, mayConcernOneKey } from '../connection/redis-errors.js';
import type { ScriptCall } from '../connection/script-call.js';
import { slotOf } from '../hash-slot.js';
import type { Script } from '../scripts.js';

/** No script call is longer: it would keep other clients waiting. */
const LARGEST_BATCH = 128;
const SMALLEST_FULL_BATCH = 32;
/** One that the server works on, and one for it to go on with. */
const MOST_IN_FLIGHT = 2;

/** What a batch needs to know of the requests that travel in it. */
export interface BatchedScript<Request extends { readonly key: string }, Reply> {
  readonly script: Script;
  /** It takes something, and is not to be executed after the command time-out. */
  readonly limited: boolean;
  /** Whether both can share the arguments that are sent once a call. */
  alike(one: Request, other: Request): boolean;
  keys(requests: readonly Request[]): string[];
  args(requests: readonly Request[]): string[];
  /** @throws BackendError when this request failed, and the others need not have */
  read(reply: unknown, index: number, request: Request, call: ScriptCall): Reply;
}

/** A class, for the reason in engine/list-of.ts. */
class Item<Request, Reply> {
  /** Set at the end of the tick in which it was asked for. */
  deadline = Number.POSITIVE_INFINITY;
  settled = false;

  constructor(
    readonly request: Request,
    readonly resolve: (reply: Reply) => void,
    readonly reject: (error: BackendError) => void,
  ) {}
}

/** Script calls that went out together. */
interface Flight {
  /** How many of them have no answer. */
  open: number;
}

interface BatchCall<Request, Reply> {
  readonly flight: Flight;
  readonly items: readonly Item<Request, Reply>[];
  call: ScriptCall | undefined;
}

/**
 * One kind of command, on its way to one node. What is asked for in one tick travels in one script call, as far as it is
 * alike and in one slot; while two batches are in flight, what is asked for meanwhile waits for the next. Each request has an answer
 * of its own, within the command time-out.
 */
export class CommandBatch<Request extends { readonly key: string }, Reply> {
  private queue: Item<Request, Reply>[] = [];
  private readonly calls: BatchCall<Request, Reply>[] = [];
  private flights = 0;
  /** Requests without an answer. */
  private live = 0;
  private scheduled = false;
  /** Requests at the end of the queue that were asked for in this tick. */
  private fresh = 0;
  private timer: Timer | undefined;
  private closed = false;

  constructor(
    private readonly script: BatchedScript<Request, Reply>,
    private readonly connection: RedisConnection,
    private readonly runtime: Runtime,
    private readonly commandTimeout: number,
  ) {}

  call(request: Request): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.closed) return reject(this.endError());
      this.queue.push(new Item(request, resolve, reject));
      this.fresh++;
      this.live++;
      this.connection.underWay++;
      this.timer ??= this.watch(this.commandTimeout);
      if (this.queue.length >= LARGEST_BATCH && this.flights < MOST_IN_FLIGHT) this.runtime.detached(this.flush);
      else this.schedule();
    });
  }

  /** Rejects what has no answer. */
  close(): void {
    this.closed = true;
    this.fresh = 0;
    this.timer?.cancel();
    const items = this.calls.splice(0).flatMap((batch) => batch.items);
    for (const item of [...items, ...this.queue.splice(0)]) this.reject(item, this.endError());
  }

  /** After what runs now, and after the continuations that it wakes: they ask for more. */
  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    this.runtime.detached(this.flushNext);
  }

  private readonly flushNext = (): void => process.nextTick(this.flush);

  private readonly flush = (): void => {
    this.scheduled = false;
    this.setDeadlines();
    while (this.queue.length > 0 && this.flights < MOST_IN_FLIGHT) this.launch(this.nextItems());
  };

  /** Requests of one tick share a deadline, from its end on: nothing is sent or answered while it lasts, however long that is. */
  private setDeadlines(): void {
    if (this.fresh === 0) return;
    const deadline = this.runtime.monotonic() + this.commandTimeout;
    for (let i = this.queue.length - this.fresh; i < this.queue.length; i++) this.queue[i].deadline = deadline;
    this.fresh = 0;
  }

  private nextItems(): Item<Request, Reply>[] {
    const full = this.fullBatch();
    if (this.queue.length > full) return this.queue.splice(0, full);
    const items = this.queue;
    this.queue = [];
    return items;
  }

  /** Half of all that is under way, releases beside acquisitions: one half is in the server's hands while the other is in ours. */
  private fullBatch(): number {
    return Math.min(LARGEST_BATCH, Math.max(SMALLEST_FULL_BATCH, Math.ceil(this.connection.underWay / 2)));
  }

  private launch(items: Item<Request, Reply>[]): void {
    const groups = this.group(items);
    const flight: Flight = { open: 0 };
    this.flights++;
    for (const group of groups) this.send(flight, group);
  }

  /** Those that can share a script call. */
  private group(items: Item<Request, Reply>[]): Item<Request, Reply>[][] {
    const groups: Item<Request, Reply>[][] = [];
    const slots: (number | undefined)[] = [];
    for (const item of items) {
      const slot = this.connection.isCluster ? slotOf(item.request.key) : undefined;
      let match = 0;
      while (match < groups.length && !(slots[match] === slot && this.isAlike(groups[match], item))) match++;
      if (match < groups.length) groups[match].push(item);
      else slots[groups.push([item]) - 1] = slot;
    }
    return groups;
  }

  private isAlike([first]: Item<Request, Reply>[], item: Item<Request, Reply>): boolean {
    return this.script.alike(first.request, item.request);
  }

  private send(flight: Flight, items: readonly Item<Request, Reply>[]): void {
    const batch: BatchCall<Request, Reply> = { flight, items, call: undefined };
    flight.open++;
    this.calls.push(batch);
    const requests = items.map(({ request }) => request);
    batch.call = this.connection.run({
      script: this.script.script,
      keys: this.script.keys(requests),
      args: this.script.args(requests),
      // The last of them came last.
      deadline: this.script.limited ? items[items.length - 1].deadline : undefined,
      divisible: items.length > 1,
      done: (reply) => {
        this.deliver(batch, reply);
        this.land(batch);
      },
      fail: (error) => {
        const open = items.filter((item) => !item.settled);
        // What one name is refused, the others need not be.
        if (items.length > 1 && mayConcernOneKey(error)) for (const item of open) this.send(flight, [item]);
        else for (const item of open) this.reject(item, callError(error, batch.call!, this.connection.description));
        this.land(batch);
      },
    });
  }

  private deliver({ items, call }: BatchCall<Request, Reply>, reply: unknown): void {
    for (let index = 0; index < items.length; index++) {
      const item = items[index];
      if (item.settled) continue;
      try {
        const answer = this.script.read(reply, index, item.request, call!);
        this.settle(item);
        item.resolve(answer);
      } catch (error) {
        this.reject(item, error as BackendError);
      }
    }
  }

  /** Answered, or given up: when the last call of its flight has landed, the next may start. */
  private land(batch: BatchCall<Request, Reply>): void {
    const at = this.calls.indexOf(batch);
    if (at < 0) return;
    this.calls.splice(at, 1);
    if (--batch.flight.open > 0) return;
    this.flights--;
    if (this.queue.length > 0) this.schedule();
  }

  /** One timer for all: requests stand in the order of their deadlines. */
  private watch(delay: number): Timer {
    return deadlineTimer(this.runtime, delay, () => this.expireWhatIsDue());
  }

  private expireWhatIsDue(): void {
    const now = this.runtime.monotonic();
    for (const batch of [...this.calls]) this.expire(batch, now);
    const waiting = this.queue.findIndex(({ deadline }) => deadline > now);
    for (const item of this.queue.splice(0, waiting < 0 ? this.queue.length : waiting)) {
      this.reject(item, this.timeout('refused'));
    }
    this.timer = this.live > 0 ? this.watch(Math.max(1, this.earliestDeadline() - now)) : undefined;
  }

  private expire(batch: BatchCall<Request, Reply>, now: number): void {
    const { items, call } = batch;
    const over = items.filter(({ settled, deadline }) => !settled && deadline <= now);
    if (over.length === 0) return;
    const isLast = items.every((item) => item.settled || item.deadline <= now);
    if (isLast) {
      call!.abandon();
      this.connection.overdue(call!);
    }
    const outcome = isLast && !call!.written ? 'refused' : 'unknown';
    for (const item of over) this.reject(item, this.timeout(outcome, call!.validUntil));
    // It may never be answered: those behind it are not to wait for that.
    if (isLast) this.land(batch);
  }

  private earliestDeadline(): number {
    const flying = this.calls.flatMap(({ items }) => items);
    const open = [...flying, ...this.queue.slice(0, 1)].filter(({ settled }) => !settled);
    return Math.min(...open.map(({ deadline }) => deadline));
  }

  private settle(item: Item<Request, Reply>): void {
    item.settled = true;
    this.live--;
    this.connection.underWay--;
  }

  private reject(item: Item<Request, Reply>, error: BackendError): void {
    if (item.settled) return;
    this.settle(item);
    item.reject(error);
  }

  private timeout(outcome: BackendError['outcome'], validUntil?: number): BackendError {
    const message = `${this.connection.description}: no answer within ${this.commandTimeout} ms`;
    return new BackendError(message, 'unavailable', outcome, { validUntil });
  }

  private endError(): BackendError {
    return new BackendError(`${this.connection.description}: the lock backend was closed`, 'unavailable', 'unknown');
  }
}
