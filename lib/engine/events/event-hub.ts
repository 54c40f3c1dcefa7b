import type { Channel } from 'node:diagnostics_channel';
import type { Runtime } from '../../backends/runtime.js';
import { type ClientIdentity, describeLoser } from '../describe-holder.js';
import { EVENT_NAMES, type LockEventName, type LockEvents } from './lock-events.js';
import { describeThrown, harmless, type LockLogger } from './lock-logger.js';

/** Channels on which events are published as well: see engine/events/channels.ts. */
export type EventChannels = Partial<Record<LockEventName, Channel>>;

/** Events that carry durations. */
const TIMED: readonly LockEventName[] = ['acquired', 'released', 'detached'];

/** How many subjects of {@link EventHub.warnOnce} are remembered. Others are not warned about. */
const MOST_SUBJECTS = 100;

/**
 * The listeners of one service. An exception in a listener is logged and has no other effect. Events `error` and `lost`
 * without a listener are logged, too.
 */
export class EventHub {
  /**
   * Whether somebody listens to an event with a wait or hold time. This is a field rather than a method because each
   * acquisition reads it.
   */
  timed = false;
  /** Whether somebody listens to failed acquisitions. */
  failures = false;
  private readonly listeners = new Map<LockEventName, Set<(event: never) => void>>();
  /** Those listeners that are parts of the library. */
  private readonly observers = new WeakSet<(event: never) => void>();
  private readonly warnedAbout = new Set<string>();
  private readonly loggedLosses = new WeakSet<Error>();

  /**
   * @param logger must not throw
   * @param identity the process, for the log
   */
  constructor(
    private readonly runtime: Runtime,
    readonly logger: LockLogger,
    private readonly channels: EventChannels = {},
    private readonly identity?: ClientIdentity,
  ) {}

  /** @returns a function that removes the listener */
  on<E extends LockEventName>(event: E, listener: (event: LockEvents[E]) => void): () => void {
    if (!EVENT_NAMES.includes(event))
      throw new TypeError(`There is no event '${event}'; there are ${EVENT_NAMES.join(', ')}`);
    const set = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, set.add(listener));
    this.noteListeners();
    return () => {
      set.delete(listener);
      this.noteListeners();
    };
  }

  /** Like {@link on}, for a part of the library. Errors and losses are logged as if nobody listened. */
  observe<E extends LockEventName>(event: E, listener: (event: LockEvents[E]) => void): () => void {
    this.observers.add(listener);
    return this.on(event, listener);
  }

  /** Logs a loss, unless the log has it already. */
  warnOfLoss(loss: Error, details = ''): void {
    if (this.loggedLosses.has(loss)) return;
    this.loggedLosses.add(loss);
    this.logger.warn(loss.message + details);
  }

  /** Logs a warning about a subject, such as a method, only the first time. */
  warnOnce(subject: string, message: string): void {
    if (this.warnedAbout.has(subject) || this.warnedAbout.size >= MOST_SUBJECTS) return;
    this.warnedAbout.add(subject);
    this.logger.warn(message);
  }

  /** Whether anybody listens to the event, so that it has to be created. */
  hasListener(event: LockEventName): boolean {
    return this.hasListeners(event) || this.channels[event]?.hasSubscribers === true;
  }

  emit<E extends LockEventName>(event: E, details: LockEvents[E]): void {
    this.channels[event]?.publish(details);
    const listeners = this.listeners.get(event);
    if (event === 'error' && !this.isReported(listeners)) this.logger.error((details as Error).message);
    if (event === 'lost' && !this.isReported(listeners)) {
      const loss = details as LockEvents['lost'];
      this.warnOfLoss(loss.error, `. It was held by ${describeLoser(loss, this.identity)}`);
    }
    if (listeners === undefined || listeners.size === 0) return;
    this.runtime.detached(() => {
      for (const listener of [...listeners]) this.call(event, listener as (event: LockEvents[E]) => unknown, details);
    });
  }

  /** Emits an `error` event if work that is not awaited fails, instead of ending the process. */
  unawaited(work: unknown): void {
    Promise.resolve(work).catch((error: unknown) =>
      this.emit('error', error instanceof Error ? error : new Error(describeThrown(error))),
    );
  }

  /** Whether the application listens, so that nothing has to be logged. */
  private isReported(listeners: ReadonlySet<(event: never) => void> = new Set()): boolean {
    return [...listeners].some((listener) => !this.observers.has(listener));
  }

  private hasListeners(event: LockEventName): boolean {
    return (this.listeners.get(event)?.size ?? 0) > 0;
  }

  private noteListeners(): void {
    this.timed = TIMED.some((event) => this.hasListeners(event));
    this.failures = this.hasListeners('failed');
  }

  private call<E extends LockEventName>(
    event: E,
    listener: (event: LockEvents[E]) => unknown,
    details: LockEvents[E],
  ): void {
    harmless(
      () => listener(details),
      (error) => this.logger.error(`A listener of '${event}' failed: ${describeThrown(error)}`),
    );
  }
}
