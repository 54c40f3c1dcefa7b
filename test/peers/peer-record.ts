import { History, type HistoryRecord } from '../chaos/history.js';

/** What a process of peer-program.mjs prints. */
export type PeerRecord = { readonly at: number; readonly process: string } & (
  | { readonly kind: 'ready' | 'ended' | 'crashed' }
  | { readonly kind: 'unhandled' | 'warned'; readonly message: string }
  /** The longest garbage collection, in milliseconds. */
  | { readonly kind: 'collected'; readonly longest: number }
  | { readonly kind: 'sent' | 'granted' | 'release-asked'; readonly call: string }
  /** The library said at this moment that the caller held the lock, or that it had lost it. */
  | { readonly kind: 'held' | 'lost'; readonly call: string }
  /** The library returned after the release. */
  | { readonly kind: 'returned'; readonly call: string }
  /** `failed`: after the body. */
  | { readonly kind: 'refused' | 'failed'; readonly call: string; readonly error: string; readonly message: string }
);

export const NAME = 'lock';

/**
 * The same as a history for the checkers. A caller holds the lock from its grant until the last moment at which the
 * library said that it holds it, or, if the library says nothing, at which the body still worked. An unhandled error
 * ends a process, unless the application prevents it, so what bodies did after one does not count. Libraries without
 * fencing tokens have none that grow, so this is a lock that n = 1 may hold.
 *
 * @param isConfirmed whether the library returns without an error only if the lock was still held at the release
 */
export function historyOf(records: readonly PeerRecord[], isConfirmed: boolean): History {
  const sorted = [...records].sort((one, other) => one.at - other.at);
  const held = new Map<string, number>();
  /** The calls in whose body their process would have ended, by process. */
  const inside = new Map<string, Set<string>>();
  const ended = new Set<string>();
  for (const record of sorted) {
    const calls = inside.get(record.process) ?? new Set();
    inside.set(record.process, calls);
    if (record.kind === 'granted') calls.add(record.call);
    else if (record.kind === 'returned' || record.kind === 'failed') calls.delete(record.call);
    else if (record.kind === 'unhandled') for (const call of calls) ended.add(call);
    else if (record.kind === 'held' && !ended.has(record.call)) held.set(record.call, record.at);
  }
  let token = 0;
  const events = sorted.flatMap(({ at, process, ...record }): HistoryRecord[] => {
    switch (record.kind) {
      case 'sent':
        return [{ at, process, kind: 'sent', call: record.call, locks: [NAME], patient: false, mostHolders: 1 }];
      case 'granted': {
        const { call } = record;
        const validUntil = held.get(call) ?? at;
        return [
          { at, process, kind: 'granted', call, lock: NAME, type: 'place', owner: call, token: ++token, validUntil },
        ];
      }
      case 'release-asked':
      case 'lost':
        return record.kind === 'lost'
          ? [{ at, process, kind: 'lost', call: record.call, lock: NAME, reason: 'the library said so' }]
          : [{ at, process, kind: 'release-asked', call: record.call }];
      case 'returned': {
        const outcome = isConfirmed && !ended.has(record.call) ? 'released' : 'failed';
        return [{ at, process, kind: 'release-answered', call: record.call, outcome }];
      }
      case 'failed':
        return [{ at, process, kind: 'release-answered', call: record.call, outcome: 'lost' }];
      case 'refused':
        return [{ at, process, kind: 'refused', call: record.call, error: record.error, message: record.message }];
      case 'crashed':
        return [{ at, process, kind: 'crashed' }];
      default:
        return [];
    }
  });
  return new History(events);
}
