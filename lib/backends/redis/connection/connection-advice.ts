import { BackendError } from '../../lock-backend.js';
import { messageOf } from './redis-errors.js';

/** What to do, by what the message begins with or contains. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'nothing listens there; check host and port, and that Redis runs'],
  [/ENOTFOUND|EAI_AGAIN/, 'the name of the host is not known here; check it, and the DNS'],
  [
    /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/,
    'the host cannot be reached; check firewalls, security groups and the network',
  ],
  [/ENOENT|EACCES/, 'check the path of the socket, and its permissions'],
  [/WRONGPASS|NOAUTH|AUTH/, 'check user and password; reserved characters in a URL are percent-encoded'],
  [/SSL|TLS|certificate|CERT_|ECONNRESET|wrong version/i, 'check that both sides use TLS (rediss://), or neither'],
  [/maxclients|max number of clients/i, 'Redis has no connection left; raise maxclients, or find who keeps them'],
  [/LOADING|BUSY|MASTERDOWN|CLUSTERDOWN/, 'it passes when Redis has started, or the failover is over'],
];

/** What to do about an error of a connection; undefined: not known. */
export function connectionAdvice(error: unknown): string | undefined {
  const { code = '' } = (error ?? {}) as { code?: string };
  const text = `${code} ${messageOf(error)}`;
  return ADVICE.find(([pattern]) => pattern.test(text))?.[1];
}

/** An error of a connection as logs show it: where, what, and what to do. Both connections of a service say the same. */
export function explained(error: unknown, description: string): Error {
  const message = messageOf(error);
  const where = message.startsWith(description) ? '' : `${description}: `;
  if (error instanceof BackendError)
    return new BackendError(where + message, error.kind, error.outcome, { cause: error.cause });
  const advice = connectionAdvice(error);
  return new Error(`${where}${message}${advice === undefined ? '' : `: ${advice}`}`, { cause: error });
}
