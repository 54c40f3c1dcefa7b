import { describeClient, describeHolder, withoutRecord, withoutRecordBecause } from '../../engine/describe-holder.js';
import type { InspectedOwner, ListedLock, LockInspection, WaitingClient } from '../../service/lock-inspection.js';
import { durationText, leaseText } from './duration-text.js';
import { printable } from './printable.js';
import { resultText } from './result-text.js';
import { table } from './table.js';

/** At most this many of the processes that wait are shown. */
const MOST_WAITING = 20;

const TITLES = ['NAME', 'TYPE', 'HELD BY', 'IN', 'HELD FOR', 'LEASE LEFT', 'WAITING'];

/** One line per lock. If it has several readers, the line shows the first one. */
export function lockTable(locks: readonly ListedLock[]): string[] {
  return table(TITLES, locks.map(toRow));
}

/** For how many milliseconds a lock has been held; 0 if none of its holders has a record. */
export function heldFor({ owners }: ListedLock): number {
  return owners.reduce((most, { client }) => Math.max(most, client?.heldFor ?? 0), 0);
}

function toRow({ name, type, owners, remainingTime, waiting, line }: ListedLock): string[] {
  const [first, ...others] = owners;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  const { method = '', group = '', heldFor } = first?.client ?? {};
  const duration = heldFor === undefined ? '?' : durationText(heldFor);
  const holder = first === undefined ? '?' : holderName(first);
  return [
    name,
    type,
    holder + more,
    method || group || '?',
    duration,
    leaseText(remainingTime),
    waitingText(waiting, line),
  ];
}

/** `5`, or `5 in 3 processes` */
function waitingText(waiting: number, line: readonly WaitingClient[]): string {
  return line.length > 1 ? `${waiting} in ${line.length} processes` : String(waiting);
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

/** For example `2. shop-2 on web-7, pid 4242, in OrdersService.pay: 3 callers, the first for 31 s`. */
function waitingClientText({ clientId, position, callers, waitedFor, client }: WaitingClient): string {
  const who = client === undefined ? `${withoutRecord(clientId)} (${clientId})` : describeClient(client);
  const count = callers === undefined ? [] : callers === 1 ? '1 caller' : `${callers} callers`;
  const time = waitedFor === undefined ? [] : `${callers === 1 ? '' : 'the first '}for ${durationText(waitedFor)}`;
  const wait = [count, time].flat().join(', ');
  return printable(`${position === undefined ? '' : `${position}. `}${who}${wait && `: ${wait}`}`);
}

/** What is known about a held lock, one line each. */
export function inspectionLines(
  name: string,
  { type, owners, waiting, line, fencingToken, result }: LockInspection,
): string[] {
  return [
    `${printable(name)} is locked (${type})`,
    ...owners.map((owner) => `  held by     ${holderText(owner)}; lease left: ${leaseText(owner.remainingTime)}`),
    `  waiting     ${waitingText(waiting, line)}`,
    ...line.slice(0, MOST_WAITING).map((client) => `              ${waitingClientText(client)}`),
    ...(line.length > MOST_WAITING ? [`              and ${line.length - MOST_WAITING} more`] : []),
    ...(fencingToken === undefined ? [] : [`  last token  ${fencingToken}`]),
    ...(result === undefined ? [] : [`  kept        ${resultText(result)}`]),
  ];
}
