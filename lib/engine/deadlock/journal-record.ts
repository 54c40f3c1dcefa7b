/** The journal's entry for one wait. */
export interface JournalRecord {
  /** The name of the awaited lock. */
  readonly lock: string;
  /** The owner id of the caller's innermost lock. */
  readonly owner: string;
  /** The owners, and the gates of shares, that the caller waits for. */
  readonly holders: readonly string[];
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
    const { lock, owner, holders, began, ends, beat } = record ?? {};
    const hasNames = typeof lock === 'string' && typeof owner === 'string';
    const hasNumbers = [began, ends ?? 0, beat].every(Number.isFinite);
    const hasHolders = Array.isArray(holders) && holders.every((holder) => typeof holder === 'string');
    return hasNames && hasNumbers && hasHolders ? (record as JournalRecord) : undefined;
  } catch {
    return undefined;
  }
}
