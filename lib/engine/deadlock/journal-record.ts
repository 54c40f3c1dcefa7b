/** The journal's entry for one wait. */
export interface JournalRecord {
  /** The name of the awaited lock. */
  readonly lock: string;
  /** The owner id of the caller's innermost lock. */
  readonly owner: string;
  /** The owners, and the gates of shares, that the caller waits for. */
  readonly holders: readonly string[];
  /**
   * Present for a lock that several hold by `permits`, if the caller allows others beside itself. Then `holders` is
   * empty, because processes of older versions take several holders to block until all of them have released the lock.
   */
  readonly shared?: SharedLock;
  /** When the wait began, by the backend's time. */
  readonly began: number;
  /** Present if the code that started the wait has gone on without it. */
  readonly isBranch?: boolean;
  /**
   * When the wait times out, by the backend's time; absent: never, or written by a version of this library that does
   * not record it.
   */
  readonly ends?: number;
  /** Grows for as long as the wait continues. */
  readonly beat: number;
}

/** A lock that several hold. Its waiter has room as soon as fewer than `permits` do. */
export interface SharedLock {
  /** Some or all of the owners. */
  readonly holders: readonly string[];
  readonly permits: number;
}

/** A wait read from the journal, and the owner under which it was found. */
export interface FoundWait {
  readonly holder: string;
  readonly id: string;
  readonly record: JournalRecord;
}

/** @returns `undefined` for a text that no version of this library writes */
export function parseRecord(text: string): JournalRecord | undefined {
  try {
    const record = JSON.parse(text) as Partial<JournalRecord> | null;
    const { lock, owner, holders, shared, began, ends, beat } = record ?? {};
    const hasNames = typeof lock === 'string' && typeof owner === 'string';
    const hasNumbers = [began, ends ?? 0, beat].every(Number.isFinite);
    const hasHolders = areNames(holders) && (shared === undefined || isShared(shared));
    return hasNames && hasNumbers && hasHolders ? (record as JournalRecord) : undefined;
  } catch {
    return undefined;
  }
}

function isShared(shared: Partial<SharedLock> | null): boolean {
  const { holders, permits } = shared ?? {};
  return areNames(holders) && Number.isInteger(permits) && (permits as number) > 0;
}

function areNames(list: unknown): boolean {
  return Array.isArray(list) && list.every((name) => typeof name === 'string');
}
