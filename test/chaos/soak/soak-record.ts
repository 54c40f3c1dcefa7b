import type { FlightEvent } from '../flights/flight-history.js';
import type { HistoryEvent } from '../history.js';

/** What a process does wrong on purpose, so that a verdict must find it. */
export const LEAKS = ['heap', 'handles', 'keys', 'overlap'] as const;
export type Leak = (typeof LEAKS)[number];

/** What a process is made of at a moment. Sizes are in bytes, after a garbage collection. */
export interface Sample {
  readonly heap: number;
  /** Memory outside of the heap that objects of the heap keep. */
  readonly external: number;
  readonly resident: number;
  /** Open files, sockets and servers. */
  readonly handles: number;
  readonly sockets: number;
  readonly timers: number;
  /** CPU time since its start, in milliseconds. */
  readonly cpu: number;
}

/** A line that a process of the soak prints. */
export type SoakRecord = { readonly at: number; readonly process: string } & (
  | HistoryEvent
  | { readonly kind: 'flight'; readonly event: FlightEvent }
  /** The process has connected, and waits for `go`. */
  | { readonly kind: 'ready' }
  /** The answer to `prepare`: the latches of the chapter are there. */
  | { readonly kind: 'prepared' }
  /** The answer to `ping`. */
  | { readonly kind: 'pong'; readonly number: number }
  /** The answer to `rest`: no call is under way. */
  | { readonly kind: 'resting' }
  /** The answer to `count`: it has recorded how many permits there are. */
  | { readonly kind: 'counted' }
  /** The answer to `sample`. */
  | { readonly kind: 'sample'; readonly sample: Sample }
);
