import { messageOf } from '../../backends/redis/connection/redis-errors.js';

/** What to do, by what the message begins with or contains. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'nothing listens there; check host and port, and that Redis runs'],
  [/ENOTFOUND|EAI_AGAIN/, 'the name of the host is not known here; check it, and the DNS'],
  [
    /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/,
    'the host cannot be reached; check firewalls, security groups and the network',
  ],
  [/ENOENT|EACCES/, 'check the path of the socket, and its permissions'],
  [/NOAUTH/, 'it wants a password: redis://user:password@host; reserved characters are percent-encoded'],
  [/DENIED|protected mode/, 'set a password on the server, or ask it from its own host'],
  [/WRONGPASS|AUTH/, 'check user and password; reserved characters in a URL are percent-encoded'],
  [/SSL|TLS|certificate|CERT_|ECONNRESET|wrong version/i, 'check that both sides use TLS (rediss://), or neither'],
  [/maxclients|max number of clients/i, 'Redis has no connection left; raise maxclients, or find who keeps them'],
  [/LOADING|BUSY|MASTERDOWN|CLUSTERDOWN/, 'it passes when Redis has started, or the failover is over'],
];

/** @param usesTls whether the URL asks for TLS: a server without it does not answer the handshake */
export function connectionAdvice(error: unknown, usesTls: boolean): string {
  const { code = '' } = (error ?? {}) as { code?: string };
  const text = `${code} ${messageOf(error)}`;
  const advice = ADVICE.find(([pattern]) => pattern.test(text))?.[1] ?? 'check the URL, and the log of Redis';
  return usesTls && /ETIMEDOUT|timed out/.test(text) ? `${advice}; or the server does not use TLS: redis://` : advice;
}
