import type { Runtime } from '../../backends/runtime.js';
import { Caller, type WaitTerms } from '../waiting/caller.js';
import type { Synchronizer } from './synchronizer.js';

/** A caller that wants permits, or waits for a latch to open (which takes none). */
export class PermitWaiter<Granted> extends Caller<Granted> {
  readonly what: string;
  /** As in {@link Synchronizer.initial}. */
  readonly initial: number | undefined;

  constructor(
    { name, what, initial }: Synchronizer,
    readonly permits: number,
    terms: WaitTerms,
    runtime: Runtime,
    granted: (granted: Granted) => void,
    refused: (error: Error) => void,
  ) {
    super(name, terms, runtime, granted, refused);
    this.what = what;
    this.initial = initial;
  }
}
