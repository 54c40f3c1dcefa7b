import { BackendError } from '../backends/lock-backend.js';
import type { RequestId, SynchronizerBackend } from '../backends/synchronizer-backend.js';
import { abortedError } from './caller.js';
import { ChangeLane } from './change-lane.js';
import type { Change } from './changes.js';
import { LockConfigurationError } from './errors.js';
import type { LockEngine } from './lock-engine.js';
import { toLockName } from './lock-name.js';
import { PermitKeeper } from './permit-keeper.js';
import type { Contender, Supply, Synchronizer } from './supply.js';
import { refusalOf } from './synchronizer-refusal.js';
import { WaitingLine } from './waiting-line.js';

/** What callers wait for: permits, permits with ids, that a latch opens. */
type LineKind = 'permits' | 'ids' | 'latch';
type Line = Pick<WaitingLine<never>, 'expel' | 'close'>;

/**
 * The semaphores and latches of one service: who waits for them, what is changed in them, and the permits that are kept. What is
 * idle is forgotten: nothing here grows with the names that were seen.
 */
export class Synchronizers {
  readonly keeper: PermitKeeper;
  private readonly lines = new Map<string, Line>();
  private readonly lanes = new Map<string, ChangeLane>();
  private readonly changes = new Set<Promise<unknown>>();
  private requests = 0;
  private closed = false;

  /** @param onIdle no permit is kept any more */
  constructor(
    private readonly engine: LockEngine,
    onIdle: () => void,
  ) {
    const { parts, settings } = engine;
    this.keeper = new PermitKeeper(() => this.backend, parts, settings.watchdogTimeout, onIdle);
  }

  /** @throws LockConfigurationError when the backend keeps none */
  get backend(): SynchronizerBackend {
    const { synchronizers, description } = this.engine.parts.backend;
    if (synchronizers !== undefined) return synchronizers;
    throw new LockConfigurationError(
      `${description} keeps no semaphores and latches: use a service with one connection for them`,
    );
  }

  /**
   * @param kind `semaphore`
   * @param method how errors name the call: `getSemaphore()`
   */
  named(name: string, kind: string, method: string): Synchronizer {
    const key = this.engine.keyOf(toLockName(name, method));
    void this.backend;
    return { name, key, what: `the ${kind} '${name}'` };
  }

  /** Waits in the line of this object and kind, which is made when nobody waits in it. */
  enter<C extends Contender<never>>(kind: LineKind, { key }: Synchronizer, caller: C, supply: () => Supply<C>): void {
    const { signal } = caller.terms;
    try {
      caller.scoped = this.engine.admit(caller.what, caller.name);
    } catch (error) {
      return caller.refuse(error as Error);
    }
    if (signal?.aborted) return caller.refuse(abortedError(caller, signal));
    const present = this.lines.get(`${kind} ${key}`) as WaitingLine<C> | undefined;
    (present ?? this.open(kind, key, supply())).enqueue(caller);
  }

  /** Changes an object, one request after the other; an outage is waited out for a minute. */
  change<Item, Reply>(object: Synchronizer, change: Change<Item, Reply>, item: Item): Promise<Reply> {
    const changed = this.lane(object.key).apply(change, item);
    const end = () => void this.changes.delete(changed);
    this.changes.add(changed);
    changed.then(end, end);
    return this.answer(object, changed);
  }

  /** Gives what the backend answers, with the errors of this library. */
  async answer<T>(object: Synchronizer, reply: Promise<T>): Promise<T> {
    try {
      return await reply;
    } catch (error) {
      throw refusalOf(object, this.engine.parts.backend, error as Error);
    }
  }

  /** What nobody waits for: a failure is an event. */
  settle(change: Promise<unknown>): void {
    change.catch((error: Error) => this.engine.parts.events.emit('error', error));
  }

  /** Shutdown: sends away who waits. */
  expel(): void {
    for (const line of [...this.lines.values()]) line.expel();
  }

  /** Lets end what is under way. Permits that are still kept lapse with their leases: what they stand for may still go on. */
  async close(): Promise<void> {
    const { logger } = this.engine.parts.events;
    for (const { semaphore, count } of this.keeper.close())
      logger.warn(
        `Shutdown: ${count} permits of ${semaphore.what} are still held; they are renewed no more, and lapse with their leases`,
      );
    this.closed = true;
    for (const lane of this.lanes.values()) lane.close();
    await Promise.all([...this.lines.values()].map((line) => line.close()));
    await Promise.allSettled(this.changes);
  }

  /** Rejects the changes that have no answer yet. */
  abandon(): void {
    const error = new BackendError('the lock service was closed before it had an answer', 'unavailable', 'unknown');
    for (const lane of [...this.lanes.values()]) lane.abandon(error);
  }

  private open<C extends Contender<never>>(kind: LineKind, key: string, supply: Supply<C>): WaitingLine<C> {
    const retire = () => this.lines.delete(`${kind} ${key}`);
    const line = new WaitingLine(this.engine.parts, supply, () => this.nextRequest(kind), retire);
    this.lines.set(`${kind} ${key}`, line);
    return line;
  }

  private lane(key: string): ChangeLane {
    const present = this.lanes.get(key);
    if (present !== undefined) return present;
    const lane = new ChangeLane(
      this.backend,
      key,
      this.engine.parts.runtime,
      () => this.nextRequest('change'),
      () => this.lanes.delete(key),
    );
    if (this.closed) lane.close();
    this.lanes.set(key, lane);
    return lane;
  }

  private nextRequest(lane: LineKind | 'change'): RequestId {
    return { lane: `${this.engine.parts.clientId}:${lane}`, number: ++this.requests };
  }
}
