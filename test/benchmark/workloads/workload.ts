import type { Contestant } from '../contestants/contestant.js';
import type { Crew } from '../crew/crew.js';
import type { ServerMeter } from '../measure/server-meter.js';

/** What a workload gets from its benchmark. */
export interface Bench {
  readonly meter: ServerMeter;
  /** This library, the floor and the peers that can run here. */
  readonly contestants: readonly Contestant[];
  /** Whether only rough figures are wanted, from fewer and shorter rounds. */
  readonly quick: boolean;
  /** Starts processes of a contestant. */
  crew(contestant: Contestant, size: number, connections: number): Promise<Crew>;
  progress(text: string): void;
}

/** A promise of the library, and whether it was kept. */
export interface Bar {
  readonly promise: string;
  readonly measured: string;
  readonly met: boolean;
}

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** What the reader has to know about it. */
  readonly notes: readonly string[];
}

/** One chart. */
export interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly values: readonly { readonly name: string; readonly value: number }[];
}

export interface Outcome {
  readonly tables: readonly Table[];
  readonly bars: readonly Bar[];
  readonly panels: readonly Panel[];
}

export interface Workload {
  readonly name: string;
  run(bench: Bench): Promise<Outcome>;
}

/** The contestants that can wait for a lock that somebody else holds. */
export function contenders({ contestants }: Bench): Contestant[] {
  return contestants.filter(({ waits }) => waits !== 'nothing');
}
