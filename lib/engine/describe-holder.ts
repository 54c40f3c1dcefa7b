import type { ClientRecord } from '../backends/lock-backend.js';
import { isRedisson, isTicketOwner } from '../backends/owner-ids.js';

/** The application that a lock service belongs to. */
export interface ClientIdentity {
  readonly application: string;
  readonly host: string;
  readonly pid: number;
  /** The application's version; `''`: not known. */
  readonly version: string;
}

/** The process that holds a lock, according to its record in the backend. @publicApi */
export interface HolderClient {
  readonly clientId: string;
  /** The option `applicationName`, or the name in the application's package.json. */
  readonly application: string;
  readonly host: string;
  readonly pid: number;
  /** The application's version; `''`: not known. */
  readonly version: string;
  /** The decorator's template, `Class.method` if the key is a function, or the option `group`; `''`: not known. */
  readonly group: string;
  /** `Class.method` of a decorated method; `''`: not known. */
  readonly method: string;
  /** How many milliseconds the process has held the lock; undefined if its record does not mention this lock. */
  readonly heldFor?: number;
}

/** What a client's record says about one of that client's owners. */
export function holderIn(record: ClientRecord, owner: string): HolderClient {
  const { clientId, application, host, pid, version, holds } = record;
  const { group = '', method = '', heldFor } = holds.find((hold) => hold.owner === owner) ?? {};
  const holder = { clientId, application, host, pid, version, group, method };
  return heldFor === undefined ? holder : { ...holder, heldFor };
}

/**
 * How logs describe the owner of a lock, for example `shop-2 on web-7, pid 4242, in OrdersService.pay, for 31 s
 * (7242…:17)`.
 *
 * @param missing why the client is unknown, if this is known
 */
export function describeHolder(owner: string | undefined, client: HolderClient | undefined, missing?: string): string {
  if (owner === undefined) return 'an unknown owner';
  const who = client === undefined ? missing : describeClient(client);
  if (isTicketOwner(owner))
    return `nobody: the lock was detached${who === undefined ? '' : ` by ${who}`}, and waits to be adopted (${owner})`;
  return who === undefined ? owner : `${who} (${owner})`;
}

/** For example `shop-2 on web-7, pid 4242, in OrdersService.pay, for 31 s`. */
export function describeClient({ application, host, pid, group, method, heldFor }: HolderClient): string {
  const where = method || group;
  const duration = heldFor === undefined ? '' : `, for ${inWords(heldFor)}`;
  return `${application} on ${host}, pid ${pid}${where && `, in ${where}`}${duration}`;
}

/** How the log describes the owner in this process that has lost a lock. `held`: for how many ms it had it */
export function describeLoser(
  {
    owner,
    group,
    method,
    held,
  }: { readonly owner: string; readonly group: string; readonly method: string; readonly held?: number | undefined },
  identity: ClientIdentity | undefined,
): string {
  if (identity === undefined) return owner;
  return describeHolder(owner, {
    ...identity,
    clientId: '',
    group,
    method,
    ...(held !== undefined && { heldFor: held }),
  });
}

function inWords(time: number): string {
  const seconds = Math.round(time / 1_000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

const REDISSON = 'a Redisson client';
const OURS = 'a client without a record';

/** How messages name an owner whose client has no record. */
export function withoutRecord(owner: string): string {
  return isRedisson(owner) ? REDISSON : OURS;
}

/** Like {@link withoutRecord}, but with the reason, for logs. */
export function withoutRecordBecause(owner: string): string {
  return isRedisson(owner)
    ? REDISSON
    : `${OURS}: its process has ended, keeps the lock by holdAtLeast, has not held anything for a second yet, or uses a quorum`;
}
