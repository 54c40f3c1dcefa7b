import type { ClientRecord, HeldType, HoldRecord, WaitRecord } from '../backends/lock-backend.js';

/**
 * A process that uses locks, according to the record that it refreshes every ten seconds. See
 * `LockService.clients`. @publicApi
 */
export interface LockClient extends Omit<ClientRecord, 'holds' | 'waits'> {
  /** Whether this client is the service that you called. */
  readonly mine: boolean;
  /** Up to 20 of the locks that it holds, the oldest first. Locks with another `keyPrefix` are left out. */
  readonly holds: readonly ClientHold[];
  /** Up to 20 of the locks that it waits for, the longest wait first. */
  readonly waits: readonly ClientWait[];
}

/** A lock that a client holds. @publicApi */
export interface ClientHold extends Omit<HoldRecord, 'key'> {
  readonly name: string;
  readonly type: HeldType;
}

/** A lock that callers of a client wait for. @publicApi */
export interface ClientWait extends Omit<WaitRecord, 'key'> {
  readonly name: string;
  readonly type: HeldType;
}

/** @param clientId of the calling service */
export function toLockClient(record: ClientRecord, keyPrefix: string, clientId: string): LockClient {
  const { holds, waits, ...others } = record;
  return {
    ...others,
    mine: record.clientId === clientId,
    holds: named(holds, keyPrefix),
    waits: named(waits, keyPrefix),
  };
}

function named<T extends { readonly key: string }>(
  records: readonly T[],
  keyPrefix: string,
): (Omit<T, 'key'> & { name: string })[] {
  return records
    .filter(({ key }) => key.startsWith(keyPrefix))
    .map(({ key, ...others }) => ({ name: key.slice(keyPrefix.length), ...others }));
}
