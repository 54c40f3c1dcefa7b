import type { Tasks } from '../worker/tasks.js';

/** The processes of one contestant, all doing the same. */
export interface Crew {
  /** Gives every process the same task. Rejects when one of them fails, or lasts too long. */
  run<T extends keyof Tasks>(task: T, ...args: Parameters<Tasks[T]>): Promise<Awaited<ReturnType<Tasks[T]>>[]>;
  /**
   * Stops the processes where they are, timers, compilers and collectors of garbage included, so that they take nothing
   * from others.
   */
  suspend(): void;
  resume(): void;
  /** Ends the processes, whatever they do. */
  close(): void;
}

/** Milliseconds after which a task has failed. */
export const TASK_LIMIT = 60_000;
