import type { SentCommand } from '../links/link.js';
import type { Topology } from '../links/topology.js';

const OWN_CLIENT = 'give locks a client of their own, such as client.duplicate()';

export const MONITORS = `the application runs MONITOR on this client: ${OWN_CLIENT}`;

/** Which options choose TLS. */
const WITH_TLS = 'write rediss://, or set tls (node-redis: tls: true in socket)';
const WITHOUT_TLS = 'write redis://, or leave out tls';

/**
 * Advice for errors, by what their code or message contains. Clients report an answer that is not one of Redis by its
 * first byte: 'H' of HTTP, and 21 of an alert of TLS.
 */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/RESP type 72\b|got "H" as reply type/, 'an HTTP server answered there. Check the port'],
  [/RESP type 21\b|got "\\u0015" as reply type/, `a server answered there that uses TLS: ${WITH_TLS}`],
  [/Unknown RESP type|Protocol error, got/, 'what answered there is not Redis. Check the host and port'],
  [
    /WRONG_VERSION_NUMBER|wrong version number/,
    `a server answered there that does not use TLS. Check the port; if it is that of Redis, ${WITHOUT_TLS}`,
  ],
  [
    /unknown command ['`]?sentinel/i,
    'a Redis server answered there, and not a Sentinel. Check the ports of the Sentinels, or give the server as the connection, without sentinels (node-redis: sentinelRootNodes)',
  ],
  [
    /unknown command/i,
    'the server may be a Sentinel: give its address in sentinels, with the name of its master (node-redis: sentinelRootNodes and name), or give the address of the master. It may be a proxy that knows only some commands, such as twemproxy or Envoy: connect to Redis directly. If it is a Redis, the command was renamed or disabled',
  ],
  [
    /cluster support disabled/,
    'the server is no node of a cluster: give { host, port } or a URL instead of nodes (node-redis: rootNodes)',
  ],
  [/ECONNREFUSED/, 'nothing is listening there. Check the host and port, and that Redis is running'],
  [/ENOTFOUND|EAI_AGAIN/, 'the host name cannot be resolved. Check the name and your DNS'],
  [
    /ETIMEDOUT|Connection timeout|EHOSTUNREACH|ENETUNREACH/,
    'the host cannot be reached. Check firewalls, security groups and the network',
  ],
  [/ENOENT|EACCES/, 'check the path of the socket and its permissions'],
  [/Replica can't interact with the keyspace/, MONITORS],
  [/subscriber mode/i, `the application has subscribed to channels on this client: ${OWN_CLIENT}`],
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
  [/SSL|TLS/i, 'check that both sides use TLS (rediss://), or that neither does'],
  [
    /maxclients|max number of clients/i,
    'Redis refused the connection because maxclients is reached. Raise maxclients, or find the clients that hold connections with CLIENT LIST',
  ],
  [/LOADING|MASTERDOWN|CLUSTERDOWN/, 'this ends once Redis has started, or once the failover is complete'],
];

/** What a server does that was restarted, and at every attempt one that expects something else. */
const CLOSED = /ECONNRESET|EPIPE|Connection is closed|Socket closed unexpectedly/;
/** The same after it had worked. */
const CLOSED_LATER =
  'the server, or something on the way to it, closed a connection that had worked. It is opened again. If it happens again and again, look for an idle timeout (of Redis: CONFIG GET timeout; of a load balancer, NAT or firewall), or for restarts and failovers of the server';
/** What a server without TLS does when a client begins a handshake. */
const SILENT = /ETIMEDOUT|timed out|Connection timeout|no answer|'(?:re)?connecting'|has not connected/;

/**
 * What to do about a connection error; undefined if there is no advice.
 *
 * @param text the code of the error, and its message
 * @param usesTls whether the client uses TLS
 * @param wasServed whether the server has answered before, so that address, TLS and rights were right
 */
export function connectionAdvice(text: string, usesTls = false, wasServed = false): string | undefined {
  if (wasServed && CLOSED.test(text)) return CLOSED_LATER;
  const advice =
    ADVICE.find(([pattern]) => pattern.test(text))?.[1] ?? (CLOSED.test(text) ? closed(usesTls) : undefined);
  if (!usesTls || wasServed || !SILENT.test(text)) return advice;
  const plain = `if the server does not use TLS, ${WITHOUT_TLS}`;
  return advice === undefined ? plain : `${advice}; or, ${plain}`;
}

function closed(usesTls: boolean): string {
  const port = usesTls ? `without TLS: ${WITHOUT_TLS}` : `for TLS: ${WITH_TLS}`;
  return `the server closed the connection. If it does so each time, the port may be one ${port}. Or it belongs to another service, the server is in protected mode (no password is set, and you connect from another host), or maxclients is reached`;
}

/**
 * What to do about a connection on which a blocking command of the application runs, or on which nothing has arrived
 * since a command was written, and which this library does not replace, because it is the application's; undefined if
 * there is no such connection.
 *
 * @param command the unanswered command
 */
export function silenceAdvice(topology: Topology, command: SentCommand | undefined): string | undefined {
  if (topology.owned || command?.socket === undefined) return undefined;
  const blockedBy = topology.blockedBy?.(command.socket);
  if (blockedBy !== undefined)
    return `the application runs ${blockedBy} on this ioredis client, and every other command waits behind it: ${OWN_CLIENT}`;
  if (command.idleSinceWrite === undefined) return undefined;
  return 'nothing arrives on the connection of your ioredis client. If it is dead, only the client can replace it: set socketTimeout in its options (of a cluster: in redisOptions), or give RedisLockModule the options instead of the client';
}
