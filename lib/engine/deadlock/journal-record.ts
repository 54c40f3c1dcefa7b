/** One wait in the journal of waits. */
export interface JournalRecord {
  /** The name of the lock that is waited for. */
  readonly lock: string;
  /** An owner that the caller holds a lock by: the innermost one. */
  readonly owner: string;
  /** The owners, and gates of shares, that it waits for. */
  readonly holders: readonly string[];
  /** When the wait began, by the backend's time. */
  readonly began: number;
  /**
   * When its waitTime ends, by the backend's time. Absent: never, or written by a version of this library without this
   * field.
   */
  readonly ends?: number;
  /** Grows while the wait lasts. */
  readonly beat: number;
}

/** A wait that was read, and the owner that it was found under. */
export interface FoundWait {
  readonly holder: string;
  readonly id: string;
  readonly record: JournalRecord;
}

/**
 * Whether one wait began before the other. Of two that began together it is the one with the smaller owner: all
 * processes agree.
 */
export function isBefore(one: Pick<FoundWait, 'id' | 'record'>, other: Pick<FoundWait, 'id' | 'record'>): boolean {
  const [a, b] = [one.record, other.record];
  if (a.began !== b.began) return a.began < b.began;
  return a.owner === b.owner ? one.id < other.id : a.owner < b.owner;
}

/** @returns `undefined` for a text that no version of this library writes */
export function parseRecord(text: string): JournalRecord | undefined {
  try {
    const record = JSON.parse(text) as Partial<JournalRecord> | null;
    const { lock, owner, holders, began, ends, beat } = record ?? {};
    const hasNames = typeof lock === 'string' && typeof owner === 'string';
    const hasNumbers = [began, ends ?? 0, beat].every(Number.isFinite);
    const hasHolders = Array.isArray(holders) && holders.every((holder) => typeof holder === 'string');
    return hasNames && hasNumbers && hasHolders ? (record as JournalRecord) : undefined;
  } catch {
    return undefined;
  }
}
