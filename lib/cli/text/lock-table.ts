import type { InspectedOwner, ListedLock } from '../../service/lock-inspection.js';
import { durationText, leaseText } from './duration-text.js';
import { table } from './table.js';

const TITLES = ['NAME', 'TYPE', 'HELD BY', 'IN', 'SINCE', 'LEASE LEFT', 'WAITING'];

/** One line a lock; of several readers, the first one. */
export function lockTable(locks: readonly ListedLock[]): string[] {
  return table(TITLES, locks.map(toRow));
}

/** For how long a lock has been held, as far as its holders have told. */
export function heldFor({ owners }: ListedLock): number {
  return owners.reduce((most, { client }) => Math.max(most, client?.heldFor ?? 0), 0);
}

function toRow({ name, type, owners, remainingTime, waiting }: ListedLock): string[] {
  const [first, ...others] = owners;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  const { method = '', group = '', heldFor } = first?.client ?? {};
  const since = heldFor === undefined ? '?' : durationText(heldFor);
  const holder = first === undefined ? '?' : holderName(first);
  return [name, type, holder + more, method || group || '?', since, leaseText(remainingTime), String(waiting)];
}

function holderName({ owner, client, redisson }: InspectedOwner): string {
  if (client !== undefined) return `${client.application} on ${client.host}, pid ${client.pid}`;
  return redisson ? `a Redisson client (${owner})` : owner;
}
