import type { Runtime } from '../backends/runtime.js';
import { harmless } from './harmless-logger.js';
import type { LockLogger } from './lock-logger.js';

export type { LockLogger } from './lock-logger.js';

/** What listeners of `LockService.on` are told. Times are milliseconds. @publicApi */
export interface LockEvents {
  /** `waited` is 0 when nobody listened yet as the acquisition began. */
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

/** What was thrown may be anything. */
function inWords(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'with something that cannot be shown';
  }
}

/** Listeners of one service. One that throws is logged and harms nobody; an error nobody listens for is logged. */
export class EventHub {
  private readonly listeners = new Map<LockEventName, Set<(event: never) => void>>();

  /** @param logger does not throw */
  constructor(
    private readonly runtime: Runtime,
    readonly logger: LockLogger,
  ) {}

  /** @returns a function that takes the listener off again */
  on<E extends LockEventName>(event: E, listener: (event: LockEvents[E]) => void): () => void {
    if (!EVENT_NAMES.includes(event))
      throw new TypeError(`There is no event '${event}'; there are ${EVENT_NAMES.join(', ')}`);
    const set = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, set.add(listener));
    return () => set.delete(listener);
  }

  /** Whether it is worth to make an event. */
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
