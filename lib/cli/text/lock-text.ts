import { describeHolder, withoutRecordBecause } from '../../engine/clients/describe-holder.js';
import type { InspectedOwner, ListedLock, LockInspection } from '../../service/lock-inspection.js';
import { durationText, leaseText } from './duration-text.js';
import { printable } from './printable.js';
import { resultText } from './result-text.js';
import { table } from './table.js';

const TITLES = ['NAME', 'TYPE', 'HELD BY', 'IN', 'HELD FOR', 'LEASE LEFT', 'WAITING'];

/** One line per lock. If it has several readers, the line shows the first one. */
export function lockTable(locks: readonly ListedLock[]): string[] {
  return table(TITLES, locks.map(toRow));
}

/** For how many milliseconds a lock has been held; 0 if none of its holders has a record. */
export function heldFor({ owners }: ListedLock): number {
  return owners.reduce((most, { client }) => Math.max(most, client?.heldFor ?? 0), 0);
}

function toRow({ name, type, owners, remainingTime, waiting }: ListedLock): string[] {
  const [first, ...others] = owners;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  const { method = '', group = '', heldFor } = first?.client ?? {};
  const duration = heldFor === undefined ? '?' : durationText(heldFor);
  const holder = first === undefined ? '?' : holderName(first);
  return [name, type, holder + more, method || group || '?', duration, leaseText(remainingTime), String(waiting)];
}

function holderName({ owner, client, redisson, detached }: InspectedOwner): string {
  const prefix = detached ? 'detached by ' : '';
  if (client !== undefined) return `${prefix}${client.application} on ${client.host}, pid ${client.pid}`;
  if (detached) return `detached (${owner})`;
  return redisson ? `a Redisson client (${owner})` : owner;
}

/** For example `shop-2 on web-7, pid 4242, in OrdersService.pay, for 31 s (7242…:17)`. */
function holderText({ owner, client }: InspectedOwner): string {
  return printable(describeHolder(owner, client, withoutRecordBecause(owner)));
}

/** What is known about a held lock, one line each. */
export function inspectionLines(
  name: string,
  { type, owners, waiting, fencingToken, result }: LockInspection,
): string[] {
  return [
    `${printable(name)} is locked (${type})`,
    ...owners.map((owner) => `  held by     ${holderText(owner)}; lease left: ${leaseText(owner.remainingTime)}`),
    `  waiting     ${waiting}`,
    ...(fencingToken === undefined ? [] : [`  last token  ${fencingToken}`]),
    ...(result === undefined ? [] : [`  kept        ${resultText(result)}`]),
  ];
}
