import { BackendError } from '../../lock-backend.js';
import { messageOf } from './redis-errors.js';

/** The advice for errors whose message begins with or contains a text. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'nothing listens there; check host and port, and that Redis runs'],
  [/ENOTFOUND|EAI_AGAIN/, 'the host name cannot be resolved; check the name and the DNS'],
  [
    /ETIMEDOUT|Connection timeout|EHOSTUNREACH|ENETUNREACH/,
    'the host cannot be reached; check firewalls, security groups and the network',
  ],
  [/ENOENT|EACCES/, 'check the path of the socket, and its permissions'],
  [/NOAUTH/, 'it requires a password: redis://user:password@host; reserved characters are percent-encoded'],
  [/DENIED|protected mode/, "set a password on the server, or connect from the server's own host"],
  [/WRONGPASS|AUTH/, 'check user and password; reserved characters in a URL are percent-encoded'],
  [
    /CERT_|certificate|SELF_SIGNED|UNABLE_TO_/i,
    "this host does not trust the server's certificate; name the file of its CA in NODE_EXTRA_CA_CERTS",
  ],
  [/SSL|TLS|ECONNRESET|wrong version/i, 'check that both sides use TLS (rediss://), or neither'],
  [
    /EPIPE|Connection is closed/,
    'the server hung up: it may be in protected mode (no password, another host), or have no connection left (maxclients)',
  ],
  [/maxclients|max number of clients/i, 'Redis has no connection left; raise maxclients, or find out who holds them'],
  [/LOADING|BUSY|MASTERDOWN|CLUSTERDOWN/, 'this passes once Redis has started, or the failover is over'],
];

/**
 * What to do about an error of a connection; undefined: not known.
 *
 * @param usesTls whether TLS was asked for: a server without it does not answer the handshake
 */
export function connectionAdvice(error: unknown, usesTls = false): string | undefined {
  const { code = '' } = (error ?? {}) as { code?: string };
  const text = `${code} ${messageOf(error)}`;
  const advice = ADVICE.find(([pattern]) => pattern.test(text))?.[1];
  if (!usesTls || !/ETIMEDOUT|timed out|Connection timeout/.test(text)) return advice;
  const plain = 'or the server does not use TLS: redis://';
  return advice === undefined ? plain : `${advice}; ${plain}`;
}

/**
 * The error of a connection for logs: where it happened, the reason, and what to do. Both connections of a service log
 * the same text.
 */
export function explained(error: unknown, description: string): Error {
  const message = messageOf(error);
  const where = message.startsWith(description) ? '' : `${description}: `;
  if (error instanceof BackendError)
    return new BackendError(where + message, error.kind, error.outcome, { cause: error.cause });
  const advice = connectionAdvice(error);
  return new Error(`${where}${message}${advice === undefined ? '' : `: ${advice}`}`, { cause: error });
}
