import type { History, HistoryRecord } from '../history.js';

/** Evaluates a history for the effects of a fault on users. */
export class LoadReport {
  constructor(
    private readonly history: History,
    private readonly faultAt: number,
  ) {}

  /** The errors of callers since the fault, as text: `LockUnavailableError ×3`. Busy locks do not count. */
  get errors(): string {
    const counts = new Map<string, number>();
    for (const record of this.history.records) {
      if (record.kind !== 'refused' || record.at < this.faultAt || record.error === 'LockBusyError') continue;
      counts.set(record.error, (counts.get(record.error) ?? 0) + 1);
    }
    return [...counts].map(([type, count]) => `${type} ×${count}`).join(', ') || 'no errors';
  }

  count(kind: HistoryRecord['kind'], since = 0, process?: string): number {
    return this.history.records.filter(
      (record) => record.kind === kind && record.at >= since && (process ?? record.process) === record.process,
    ).length;
  }

  /** The leases that were lost, and why. */
  get losses(): string[] {
    return this.history.records.flatMap((record) =>
      record.kind === 'lost' ? [`${record.lock} of ${record.call}: ${record.reason}`] : [],
    );
  }

  /** When this process first got a lock after `since`. */
  firstGrant(process: string, since: number): number | undefined {
    return this.history.records.find(
      (record) => record.kind === 'granted' && record.at > since && record.process === process,
    )?.at;
  }

  /** Whether this process is running a body, as far as is known here: what it records arrives later. */
  holds(process: string, lock: string): boolean {
    const call = this.lastGrant(process, lock)?.call;
    if (call === undefined) return false;
    return !this.history.records.some((record) => record.kind === 'release-asked' && record.call === call);
  }

  /** When, and under which owner id, this process last got this lock. */
  lastGrant(process: string, lock: string) {
    const grants = this.history.records.flatMap((record) =>
      record.kind === 'granted' && record.process === process && record.lock === lock ? [record] : [],
    );
    return grants.at(-1);
  }

  /** The longest time in which nobody got this lock, in ms, since the last moment before the fault. */
  longestPause(lock: string): number {
    const grants = this.history.records.flatMap((record) =>
      record.kind === 'granted' && record.lock === lock ? [record.at] : [],
    );
    grants.sort((one, other) => one - other);
    const pauses = grants.slice(1).map((at, i) => (at < this.faultAt ? 0 : at - grants[i]));
    return Math.max(0, ...pauses);
  }
}
