import type { Runtime } from '../../backends/runtime.js';
import { harmless } from './harmless-logger.js';
import type { LockLogger } from './lock-logger.js';

/** The events of `LockService.on`, with what their listeners are given. Times are in milliseconds. @publicApi */
export interface LockEvents {
  /** `waited` is 0 when there was no listener yet when the acquisition started. */
  acquired: { readonly name: string; readonly owner: string; readonly fencingToken: number; readonly waited: number };
  released: { readonly name: string; readonly owner: string };
  renewed: { readonly name: string; readonly owner: string };
  lost: { readonly name: string; readonly owner: string; readonly error: Error };
  busy: { readonly name: string; readonly remainingTime: number; readonly holder: string | undefined };
  handoff: { readonly name: string; readonly owner: string; readonly fencingToken: number };
  error: Error;
}

/** @publicApi */
export type LockEventName = keyof LockEvents;

const EVENT_NAMES: readonly string[] = [
  'acquired',
  'released',
  'renewed',
  'lost',
  'busy',
  'handoff',
  'error',
] satisfies LockEventName[];

/** Anything may have been thrown. */
function inWords(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'with something that cannot be shown';
  }
}

/** The listeners of one service. An exception in a listener is logged and has no other effect; an `error` without a listener is logged, too. */
export class EventHub {
  private readonly listeners = new Map<LockEventName, Set<(event: never) => void>>();

  /** @param logger must not throw */
  constructor(
    private readonly runtime: Runtime,
    readonly logger: LockLogger,
  ) {}

  /** @returns a function that removes the listener */
  on<E extends LockEventName>(event: E, listener: (event: LockEvents[E]) => void): () => void {
    if (!EVENT_NAMES.includes(event))
      throw new TypeError(`There is no event '${event}'; there are ${EVENT_NAMES.join(', ')}`);
    const set = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, set.add(listener));
    return () => set.delete(listener);
  }

  /** Whether anybody listens, so that the event has to be created. */
  hears(event: LockEventName): boolean {
    return (this.listeners.get(event)?.size ?? 0) > 0;
  }

  emit<E extends LockEventName>(event: E, details: LockEvents[E]): void {
    const listeners = this.listeners.get(event);
    if (listeners === undefined || listeners.size === 0) {
      if (event === 'error') this.logger.error((details as Error).message);
      return;
    }
    this.runtime.detached(() => {
      for (const listener of [...listeners]) this.call(event, listener as (event: LockEvents[E]) => unknown, details);
    });
  }

  private call<E extends LockEventName>(
    event: E,
    listener: (event: LockEvents[E]) => unknown,
    details: LockEvents[E],
  ): void {
    harmless(
      () => listener(details),
      (error) => this.logger.error(`A listener of '${event}' failed: ${inWords(error)}`),
    );
  }
}
