import type { Called } from './decorated-calls.js';
import type { Held, Kept } from './held-leases.js';
import type { LoopJob, LoopResult } from './lock-loop.js';
import type { ServicesJob, ServicesResult } from './services.js';
import type { Drained, Waited } from './waiting-crowd.js';

/** The tasks that a process of a contestant can run. */
export interface Tasks {
  open(contestant: string, port: number, connections: number): Promise<void>;
  loop(job: LoopJob): Promise<LoopResult>;
  /** Runs against another contestant in the same process; the result is the median latency of each, in µs. */
  duel(rival: string, key: string, turns: number): Promise<readonly number[]>;
  /** Each connection is a service with one caller. */
  contend(job: ServicesJob): Promise<ServicesResult>;
  /**
   * `callers` at a time try to acquire a lock that the second connection holds, in turns with those of another
   * contestant in the same process. The result is the median time of each, in µs.
   */
  refuse(rival: string, key: string, callers: number, turns: number): Promise<readonly number[]>;
  /** Its first connection holds the key, and `count` callers of its second one wait for it. */
  gather(key: string, count: number): Promise<void>;
  watch(duration: number): Promise<Waited>;
  drain(patience: number): Promise<Drained>;
  take(key: string, count: number): Promise<Held>;
  keep(duration: number): Promise<Kept>;
  call(method: 'bare' | 'locked', count: number): Promise<Called>;
}

export interface Order {
  readonly id: number;
  readonly task: keyof Tasks;
  readonly args: readonly unknown[];
}

export interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}
