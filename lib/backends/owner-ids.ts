/** The id of an owner: one key of one attempt of one client. See docs/decisions/owner-ids.md. */
export function ownerId(clientId: string, number: number): string {
  return `${clientId}:${number}`;
}

/**
 * The client of an owner. An owner without a colon, which no version of this library makes, counts as its own client.
 */
export function clientOf(owner: string): string {
  const end = owner.lastIndexOf(':');
  return end < 0 ? owner : owner.slice(0, end);
}

/** Whether an owner is one of this client. */
export function isOwnerOf(clientId: string, owner: string): boolean {
  return owner.startsWith(`${clientId}:`);
}

/** Where a UUID has its version. */
const VERSION_AT = 14;
/** The version for ids of any making (RFC 9562). Java makes ids of version 4. */
const OURS = '8';

/** The id of a client: a UUID that shows that it belongs to a client of this library, and not to one of Redisson. */
export function toClientId(uuid: string): string {
  return `${uuid.slice(0, VERSION_AT)}${OURS}${uuid.slice(VERSION_AT + 1)}`;
}

/** Whether an owner belongs to a client of Redisson. Only for owners whose client has no record. */
export function isRedisson(owner: string): boolean {
  return owner[VERSION_AT] === '4';
}
