import { createHash } from 'node:crypto';

/**
 * The id of an owner: it stands for one key of one attempt of one client. See docs/internals/decisions/owner-ids.md.
 */
export function ownerId(clientId: string, number: number, servesLines = true): string {
  return `${clientId}:${servesLines ? '' : NO_LINES}${number}`;
}

/** In front of the number of an owner whose client may not serve lines now. Other numbers do not begin with it. */
const NO_LINES = '0';

/**
 * The owner of a detached lock. Anybody who knows the secret of its ticket may adopt the lock. Scripts compute this id,
 * too.
 */
export function ticketOwner(clientId: string, secret: string): string {
  return `${clientId}:t-${createHash('sha1').update(secret).digest('hex')}`;
}

/** Whether a lock with this owner was detached and waits to be adopted. */
export function isTicketOwner(owner: string): boolean {
  return TICKET_OWNER.test(owner);
}

const TICKET_OWNER = /:t-[0-9a-f]{40}$/;

/** The client of an owner. An owner without a colon, which this library never creates, counts as its own client. */
export function clientOf(owner: string): string {
  const end = owner.lastIndexOf(':');
  return end < 0 ? owner : owner.slice(0, end);
}

/** The number of an owner among those of its client: it grows with each of them. */
export function numberOf(owner: string): number {
  return Number(owner.slice(owner.lastIndexOf(':') + 1));
}

/** Whether an owner belongs to this client. @publicApi */
export function isOwnerOf(clientId: string, owner: string): boolean {
  return owner.startsWith(`${clientId}:`);
}

/** The index of the version digit in a UUID. */
const VERSION_AT = 14;
const UUID_LENGTH = 36;
/** The UUID version for custom ids (RFC 9562). Java creates ids of version 4. */
const OURS = '8';
/** The version and the three digits after it, of clients whose releases serve the line. */
const SERVES_LINES = `${OURS}11e`;

/**
 * The id of a client: a UUID whose version distinguishes this library's clients from Redisson's. Three more digits tell
 * that its releases serve the line: those of Redisson, and of this library before 0.2, do not.
 */
export function toClientId(uuid: string): string {
  return `${uuid.slice(0, VERSION_AT)}${SERVES_LINES}${uuid.slice(VERSION_AT + SERVES_LINES.length)}`;
}

/** Whether this owner's client serves the line when it releases the lock. Scripts look at this, too. */
export function servesLines(owner: string): boolean {
  return owner.startsWith(SERVES_LINES, VERSION_AT) && !owner.startsWith(`:${NO_LINES}`, UUID_LENGTH);
}

/** Whether an owner belongs to a Redisson client. Use it only for owners whose client has no record. */
export function isRedisson(owner: string): boolean {
  return owner[VERSION_AT] === '4';
}
