import type { Tasks } from '../worker/tasks.js';

/** The processes of one contestant, all of which do the same. */
export interface Crew {
  /** Gives every process the same task. Rejects if one of them fails or takes too long. */
  run<T extends keyof Tasks>(task: T, ...args: Parameters<Tasks[T]>): Promise<Awaited<ReturnType<Tasks[T]>>[]>;
  /**
   * Suspends the processes, including their timers, compilers and garbage collectors, so that they do not slow others
   * down.
   */
  suspend(): void;
  resume(): void;
  /** Ends the processes, whatever they are doing. */
  close(): void;
}

/** Milliseconds after which a task has failed. */
export const TASK_LIMIT = 60_000;
