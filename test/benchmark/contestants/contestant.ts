/** One connection's locks, as a benchmark uses them: no contestant does more here than its README's quick start. */
export interface LockClient<Handle = unknown> {
  /** Waits until the lock is held. */
  acquire(key: string): Promise<Handle>;
  release(handle: Handle): Promise<unknown>;
  /** Holds the lock while `body` runs. Where there is one, it is used instead of `acquire` and `release`. */
  hold?(key: string, body: () => Promise<void> | void): Promise<unknown>;
  /** Settles when everything that was sent is answered, where calls do not wait for that. */
  settled?(): Promise<unknown>;
  close(): Promise<unknown>;
}

/** A library that takes part, or the floor below all of them. */
export interface Contestant {
  readonly name: string;
  /** Its npm package, for the version. */
  readonly package?: string;
  /**
   * What it does while somebody else holds the lock; `nothing`: it can only try once, and takes no part where callers
   * contend.
   */
  readonly waits: 'nothing' | 'polls' | 'listens';
  /** What an acquisition comes with, for the reader of the results. */
  readonly does: string;
  /** Undefined: it runs outside Node. */
  readonly open?: (port: number) => Promise<LockClient>;
}

/** A separate key for each contestant: what one that was stopped leaves behind must not keep others waiting. */
export function keyOf(contestant: Contestant, name: string): string {
  return `${name}:${contestant.name}`.replace(/[^\w:]+/g, '-');
}

/** Milliseconds after which a lock of a crashed holder is free again: for all alike. */
export const LEASE_TIME = 30_000;
/** Milliseconds between two attempts of those that poll. */
export const RETRY_DELAY = 10;
/** So many attempts never run out. */
export const FOR_EVER = 1e9;
