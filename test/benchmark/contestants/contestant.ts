/**
 * The locks of one connection, as a benchmark uses them. No contestant does more here than its README's quick start.
 */
export interface LockClient<Handle = unknown> {
  /** Waits until the lock is held. */
  acquire(key: string): Promise<Handle>;
  /** Waits for at most `waitTime` milliseconds; 0: tries once. Undefined if it was not acquired. */
  tryFor?(key: string, waitTime: number): Promise<Handle | undefined>;
  release(handle: Handle): Promise<unknown>;
  /** Holds the lock while `body` runs. If it exists, it is used instead of `acquire` and `release`. */
  hold?(key: string, body: () => Promise<void> | void): Promise<unknown>;
  /** Settles when everything that was sent has been answered; for contestants whose calls do not wait for that. */
  settled?(): Promise<unknown>;
  close(): Promise<unknown>;
}

/** A library that is compared, or the floor: the least that any lock can cost. */
export interface Contestant {
  readonly name: string;
  /** Its npm package, for the version. */
  readonly package?: string;
  /**
   * What it does while somebody else holds the lock. `nothing`: it can only try once, and is left out of workloads with
   * contention.
   */
  readonly waits: 'nothing' | 'polls' | 'listens';
  /** What an acquisition includes, for the reader of the results. */
  readonly does: string;
  /** Undefined if it runs outside Node.js. */
  readonly open?: (port: number) => Promise<LockClient>;
}

/** A separate key for each contestant, so that what a stopped one leaves behind does not make others wait. */
export function keyOf(contestant: Contestant, name: string): string {
  return `${name}:${contestant.name}`.replace(/[^\w:]+/g, '-');
}

/** Milliseconds after which the lock of a crashed holder is free again; the same for all. */
export const LEASE_TIME = 30_000;
/** Milliseconds between two attempts of those that poll. */
export const RETRY_DELAY = 10;
/** So many attempts that they never run out. */
export const FOR_EVER = 1e9;
