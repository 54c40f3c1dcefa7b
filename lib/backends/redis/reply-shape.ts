import type { BackendError } from '../lock-backend.js';
import { MONITORS } from './connection/connection-advice.js';
import { ServerError } from './connection/redis-errors.js';

/** How MONITOR shows a command. */
const MONITORED = /^\d+\.\d{6} \[\d+ /;
const INTEGER = /^-?\d+$/;

/**
 * Reads an integer of a script's reply. (A borrowed client may return it as text.)
 *
 * @throws BackendError for anything else, because it is then unknown what the server has done
 */
export function integerOf(reply: unknown, server: string): number {
  if (typeof reply === 'number' && Number.isSafeInteger(reply)) return reply;
  if (typeof reply === 'string' && INTEGER.test(reply) && Number.isSafeInteger(Number(reply))) return Number(reply);
  throw unexpected(reply, server);
}

/** Reads a list of a script's reply; throws as {@link integerOf} does. */
export function arrayOf(reply: unknown, server: string): readonly unknown[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected(reply, server);
}

/** The error for a reply that no script of this library returns. */
export function unexpected(reply: unknown, server: string): BackendError {
  if (reply === 'QUEUED') {
    return new ServerError(
      server,
      'the client is in a transaction (MULTI), which queues the commands of locks. Give RedisLockModule its own client, such as client.duplicate()',
      'denied',
      'unknown',
    );
  }
  if (MONITORED.test(String(reply))) return new ServerError(server, MONITORS, 'unavailable', 'unknown');
  const shown = String(typeof reply === 'string' ? `'${reply.slice(0, 60)}'` : typeof reply);
  return new ServerError(server, `unexpected reply to a command of this library: ${shown}`, 'unavailable', 'unknown');
}
