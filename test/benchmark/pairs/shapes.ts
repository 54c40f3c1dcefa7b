import type { Contest } from '../workloads/contest.js';
import type { Way } from './library-at.js';

/** The workload of a pair, which is shorter than the benchmark's own rounds. */
export interface Shape extends Contest {
  /** Whether the first second of a process is measured, without a warm-up. */
  readonly cold?: true;
  /** Default `one`. */
  readonly way?: Way;
}

const ONE = { processes: 1, connections: 1, body: 0, rounds: 4 } as const;

/** The shapes by the names of their workloads. */
export const SHAPES: Readonly<Record<string, readonly Shape[]>> = {
  seq: [{ ...ONE, name: 'seq', callers: 1, keys: 'fresh', duration: 150 }],
  body: [{ ...ONE, name: 'withLock', callers: 1, keys: 'fresh', duration: 150, way: 'body' }],
  background: [{ ...ONE, name: 'seq background', callers: 1, keys: 'fresh', duration: 150, way: 'background' }],
  loop: [{ ...ONE, name: 'loop', callers: 1, keys: 'one', duration: 150, way: 'background' }],
  par: [64, 256].map((callers) => ({ ...ONE, name: `par ${callers}`, callers, keys: 'fresh', duration: 100 })),
  hot1: [{ ...ONE, name: 'hot1', callers: 100, keys: 'one', duration: 250 }],
  hot4: [{ ...ONE, name: 'hot4', processes: 4, callers: 25, keys: 'one', duration: 500 }],
  several: [{ ...ONE, name: 'several', callers: 16, keys: 'fresh', duration: 100, way: 'several' }],
  nested: [{ ...ONE, name: 'nested', callers: 16, keys: 'fresh', duration: 100, way: 'nested' }],
  handoff: [{ ...ONE, name: 'handoff', connections: 8, callers: 5, keys: 'one', body: 5, duration: 'once' }],
  cold: [{ ...ONE, name: 'cold', callers: 16, keys: 'fresh', duration: 1_000, rounds: 1, cold: true }],
};
