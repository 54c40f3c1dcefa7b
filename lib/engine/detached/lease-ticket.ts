import { createHash } from 'node:crypto';
import { type DetachableType, isDetachable, type LockType } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import { LockConfigurationError, LockError } from '../errors.js';
import { LOCK_TYPES } from '../terms/lock-options.js';

/** Identifies a detached lock, and proves that its bearer may adopt it. */
export interface LeaseTicket {
  readonly key: string;
  readonly type: DetachableType;
  /** The client that detached the lock. */
  readonly clientId: string;
  /** 128 random bits as hexadecimal digits. The lock's owner in the backend contains only their hash. */
  readonly secret: string;
}

/** A lock that no process holds until its ticket is used, or its lease ends. */
export interface DetachedLock {
  readonly ticket: string;
  /** Its owner in the backend. */
  readonly owner: string;
  /** Milliseconds for which it stays locked if nobody adopts it. */
  readonly leaseTime: number;
}

/** How every ticket begins. The number is the version of the format. */
const PREFIX = 'lock-ticket-1.';
/** The longest key takes four characters per byte in JSON, and base64 adds a third. */
const LONGEST = 10_000;
const SECRET = /^[0-9a-f]{32}$/;
const CLIENT_ID = /^[^:{}\s]{1,150}$/;

export function newSecret(runtime: Runtime): string {
  // Two ids, because six bits of an id's digits are not random.
  return createHash('sha256').update(runtime.uuid()).update(runtime.uuid()).digest('hex').slice(0, 32);
}

export function writeTicket({ key, type, clientId, secret }: LeaseTicket): string {
  return PREFIX + Buffer.from(JSON.stringify([key, type, clientId, secret])).toString('base64url');
}

/**
 * Reads what a caller passes as a ticket. It may come from anywhere. No message quotes it, because a ticket is a
 * secret.
 *
 * @throws LockError for anything but a ticket, LockConfigurationError for the ticket of a service with another
 *   `keyPrefix`
 */
export function readTicket(text: unknown, keyPrefix: string): LeaseTicket {
  const ticket = typeof text === 'string' && text.startsWith(PREFIX) && text.length <= LONGEST && parse(text);
  if (!ticket)
    throw new LockError('adopt(): this is not a ticket. Pass the string that lease.detach() returned, unchanged', '');
  if (!ticket.key.startsWith(keyPrefix))
    throw new LockConfigurationError(
      `adopt(): the ticket is for the lock '${ticket.key}', but the keyPrefix of this service is '${keyPrefix}'. Detach and adopt with the same keyPrefix`,
    );
  return ticket;
}

function parse(text: string): LeaseTicket | undefined {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text.slice(PREFIX.length), 'base64url').toString());
    if (!Array.isArray(parts) || parts.length !== 4 || !parts.every((part) => typeof part === 'string'))
      return undefined;
    const [key, type, clientId, secret] = parts as [string, LockType, string, string];
    if (!LOCK_TYPES.includes(type) || !isDetachable(type) || !CLIENT_ID.test(clientId) || !SECRET.test(secret))
      return undefined;
    return { key, type, clientId, secret };
  } catch {
    return undefined;
  }
}
