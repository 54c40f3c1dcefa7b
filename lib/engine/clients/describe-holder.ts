import type { ClientRecord } from '../../backends/lock-backend.js';
import { isRedisson } from '../../backends/owner-ids.js';

/** The process that holds a lock, from its record in the backend. @publicApi */
export interface HolderClient {
  readonly clientId: string;
  /** The option `applicationName`, or the name in the application's package.json. */
  readonly application: string;
  readonly host: string;
  readonly pid: number;
  /** The application's version; `''`: not known. */
  readonly version: string;
  /**
   * The template of the decorator, `Class.method` where the key is a function, or the option `group`; `''`: not known.
   */
  readonly group: string;
  /** `Class.method` of a decorated method; `''`: not known. */
  readonly method: string;
  /** For how many milliseconds it has held the lock; undefined: its record does not mention this lock. */
  readonly heldFor?: number;
}

/** The part of a client's record that concerns one owner. */
export function holderIn(record: ClientRecord, owner: string): HolderClient {
  const { clientId, application, host, pid, version, holds } = record;
  const { group = '', method = '', heldFor } = holds.find((hold) => hold.owner === owner) ?? {};
  const holder = { clientId, application, host, pid, version, group, method };
  return heldFor === undefined ? holder : { ...holder, heldFor };
}

/**
 * How logs name the owner of a lock: `shop-2 on web-7, pid 4242, in OrdersService.pay, since 31 s (7242…:17)`.
 *
 * @param missing why nothing is known about its client, if that is known
 */
export function describeHolder(owner: string | undefined, client: HolderClient | undefined, missing?: string): string {
  if (owner === undefined) return 'an owner not known here';
  const who = client === undefined ? missing : describeClient(client);
  return who === undefined ? owner : `${who} (${owner})`;
}

/** `shop-2 on web-7, pid 4242, in OrdersService.pay, since 31 s` */
export function describeClient({ application, host, pid, group, method, heldFor }: HolderClient): string {
  const where = method || group;
  const since = heldFor === undefined ? '' : `, since ${inWords(heldFor)}`;
  return `${application} on ${host}, pid ${pid}${where && `, in ${where}`}${since}`;
}

function inWords(time: number): string {
  const seconds = Math.round(time / 1_000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

const REDISSON = 'a Redisson client';
const OURS = 'a client without a record';

/** How messages name the client of an owner that has no record. */
export function withoutRecord(owner: string): string {
  return isRedisson(owner) ? REDISSON : OURS;
}

/** The same with the reason, for logs. */
export function withoutRecordBecause(owner: string): string {
  return isRedisson(owner)
    ? REDISSON
    : `${OURS}: its process has ended, has held nothing for a second yet, or uses a quorum`;
}
