import { BackendError } from '../../lock-backend.js';
import type { SentCommand } from '../links/link.js';
import type { Topology } from '../links/topology.js';
import { messageOf } from './redis-errors.js';

/** Advice for errors, by what their code or message contains. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'nothing is listening there. Check the host and port, and that Redis is running'],
  [/ENOTFOUND|EAI_AGAIN/, 'the host name cannot be resolved. Check the name and your DNS'],
  [
    /ETIMEDOUT|Connection timeout|EHOSTUNREACH|ENETUNREACH/,
    'the host cannot be reached. Check firewalls, security groups and the network',
  ],
  [/ENOENT|EACCES/, 'check the path of the socket and its permissions'],
  [/NOAUTH/, 'Redis requires a password: redis://user:password@host, with reserved characters percent-encoded'],
  [
    /DENIED|protected mode/,
    "Redis is in protected mode. Set a password on the server, or connect from the server's own host",
  ],
  [/WRONGPASS|AUTH/, 'check the user and the password. Reserved characters in a URL must be percent-encoded'],
  [
    /CERT_|certificate|SELF_SIGNED|UNABLE_TO_/i,
    "this host does not trust the server's certificate. Set NODE_EXTRA_CA_CERTS to the path of its CA file",
  ],
  [/SSL|TLS|ECONNRESET|wrong version/i, 'check that both sides use TLS (rediss://), or that neither does'],
  [
    /EPIPE|Connection is closed/,
    'the server closed the connection. It may be in protected mode (no password is set, and you connect from another host), or maxclients may be reached',
  ],
  [
    /maxclients|max number of clients/i,
    'Redis refused the connection because maxclients is reached. Raise maxclients, or find the clients that hold connections with CLIENT LIST',
  ],
  [/LOADING|BUSY|MASTERDOWN|CLUSTERDOWN/, 'this ends once Redis has started, or once the failover is complete'],
];

/**
 * What to do about a connection error; undefined if there is no advice.
 *
 * @param usesTls whether the client uses TLS. A server without TLS does not answer the handshake.
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
 * What to do about a connection on which nothing has arrived since a command was written, and which this library does
 * not replace, because it is the application's; undefined if there is no such connection.
 *
 * @param command the unanswered command
 */
export function silenceAdvice({ owned }: Topology, command: SentCommand | undefined): string | undefined {
  if (owned || command?.idleSinceWrite === undefined) return undefined;
  return 'nothing arrives on the connection of your ioredis client. If it is dead, only the client can replace it: set socketTimeout in its options (of a cluster: in redisOptions), or give RedisLockModule the options instead of the client';
}

/**
 * A connection error for logs, with the address, the reason and what to do. Both connections of a service log the same
 * text.
 */
export function explained(error: unknown, description: string): Error {
  const message = messageOf(error);
  const where = message.startsWith(description) ? '' : `${description}: `;
  if (error instanceof BackendError)
    return new BackendError(where + message, error.kind, error.outcome, { cause: error.cause });
  const advice = connectionAdvice(error);
  return new Error(`${where}${message}${advice === undefined ? '' : `: ${advice}`}`, { cause: error });
}
