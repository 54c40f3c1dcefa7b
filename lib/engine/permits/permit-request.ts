import type { Subscription, Wake } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { RequestId } from '../../backends/synchronizer-backend.js';
import { Caller, type WaitTerms } from '../waiting/caller.js';

/** A semaphore or latch of one service. */
export interface Synchronizer {
  readonly name: string;
  /** The whole key, prefix included. */
  readonly key: string;
  /** How errors call it: `the semaphore 'mail'`. */
  readonly what: string;
}

/** One caller that wants permits, or waits for a latch to open (which takes none). */
export class PermitWaiter<Granted> extends Caller<Granted> {
  readonly what: string;

  constructor(
    { name, what }: Synchronizer,
    readonly permits: number,
    terms: WaitTerms,
    runtime: Runtime,
    granted: (granted: Granted) => void,
    refused: (error: Error) => void,
  ) {
    super(name, terms, runtime, granted, refused);
    this.what = what;
  }
}

export interface GrantResult {
  /** How many of the callers that were asked for, counted from the first, got what they want. */
  readonly served: number;
  /** Milliseconds until it makes sense to ask again without having been woken; −1: never. */
  readonly remaining: number;
}

/** One question on behalf of some callers. Asked again, it is answered alike. */
export interface PermitRequest {
  /** Whether a yes takes something: then its answer has to be known, also when nobody waits any more. */
  readonly takes: boolean;
  /** @param repeated it was asked before, without an answer, and may still be on its way */
  send(repeated: boolean): Promise<GrantResult>;
  /** Hands it to a caller that was served. */
  grant(index: number): void;
  /** These callers were served after they had left. */
  takeBack(indexes: readonly number[]): void;
}

/** What a waiting line waits for. */
export interface PermitSource<C> {
  /** The callers that can be asked for in one question, from the first on. */
  group(callers: Iterable<C>): readonly C[];
  request(callers: readonly C[], request: RequestId): PermitRequest;
  /** Listens for news: it makes sense to ask again. */
  subscribe(listener: (wake: Wake) => void): Subscription;
}

/** The first of `callers`: as many as go together with the first of all, and at most `most`. */
export function firstAlike<C>(
  callers: Iterable<C>,
  most: number,
  alike: (first: C, other: C) => boolean,
): readonly C[] {
  const group: C[] = [];
  for (const caller of callers) {
    if (group.length === most || (group.length > 0 && !alike(group[0], caller))) break;
    group.push(caller);
  }
  return group;
}
