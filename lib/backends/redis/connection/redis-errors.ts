import { BackendError, because, type NodeHealth } from '../../lock-backend.js';
import type { Topology } from '../links/topology.js';
import { connectionAdvice } from './connection-advice.js';

/** The server refused a request twice in a row because its deadline had passed. */
export class ExpiredError extends Error {
  override readonly name = 'ExpiredError';

  constructor() {
    super(
      'the request reached the server after its deadline, twice in a row: this process, the network or the server is too busy, or the clock of the server jumps',
    );
  }
}

/** The client has ended, and will never answer again. */
export class EndedError extends Error {
  override readonly name = 'EndedError';
}

/** A call to one server failed. The message begins with the server's name. */
export class ServerError extends BackendError {
  /** @param reason the message without the server's name */
  constructor(
    server: string,
    readonly reason: string,
    kind: BackendError['kind'],
    outcome: BackendError['outcome'],
    options?: ConstructorParameters<typeof BackendError>[3],
  ) {
    super(`${server}: ${reason}`, kind, outcome, options);
  }
}

/** How far a command got. */
export interface Delivery {
  /** Whether the command was written to the socket at least once. */
  readonly written: boolean;
  /** Whether the command was sent again although a server may already have executed it. */
  readonly resent: boolean;
  /** The server time in ms after which it is not executed any more; undefined when it has no deadline. */
  readonly validUntil: number | undefined;
  /** Whether the connection was in use before: its settings were right, at least until then. */
  readonly wasServed: boolean;
  /** Whether the connection is that of a client of the application. */
  readonly isBorrowed: boolean;
  /** What to do if its connection is dead, and not ours to replace. */
  readonly silenceAdvice: string | undefined;
  /** Whether its server has answered it with this error. */
  isAnswer(error: unknown): boolean;
}

/**
 * Error codes. Redis starts its messages with them, but Redis 6 puts other words before the code of an error inside a
 * script. NOTALOCK is one of our scripts: see scripts/includes/lock-fields.lua.
 */
const CODE = /\b(NOPERM|NOAUTH|WRONGPASS|WRONGTYPE|NOTALOCK|READONLY|TRYAGAIN|MOVED|ASK|CROSSSLOT)\b/;

/**
 * Redis 7.0 has no code for what a script is not permitted to do: "The user executing the script can't run this
 * command".
 */
const DENIED_IN_SCRIPT = /The user executing the script can't/;

export function errorCode(message: string): string | undefined {
  if (DENIED_IN_SCRIPT.test(message)) return 'NOPERM';
  return CODE.exec(message)?.[1] ?? (/unknown command/i.test(message) ? 'UNKNOWN' : undefined);
}

const DENIED: readonly (string | undefined)[] = ['NOPERM', 'NOAUTH', 'WRONGPASS', 'UNKNOWN'];

/** Error codes for calls with several keys. Such an error may apply to only some of the keys. */
const MAY_CONCERN_ONE_KEY: readonly (string | undefined)[] = ['NOPERM', 'TRYAGAIN', 'MOVED', 'ASK', 'CROSSSLOT'];

export function mayConcernOneKey(error: unknown): boolean {
  return MAY_CONCERN_ONE_KEY.includes(errorCode(messageOf(error)));
}

/** Error codes of a server that may execute the same request later. */
const PASSING =
  /\b(LOADING|BUSY|OOM|MISCONF|NOREPLICAS|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|NOAUTH|WRONGPASS)\b/;

/** Whether the server would answer the same call with the same error again. */
export function isLastingRefusal({ cause }: BackendError): boolean {
  return isError(cause) && cause.name === 'ReplyError' && !PASSING.test(cause.message);
}

/** The error of a whole call, as the engine sees it. */
export function callError(error: unknown, delivery: Delivery, server: string, keys?: readonly string[]): BackendError {
  if (error instanceof BackendError) return error;
  const message = messageOf(error);
  if (error instanceof EndedError)
    return new ServerError(server, message, 'closed', delivery.written ? 'unknown' : 'refused', {
      cause: error.cause,
      validUntil: delivery.validUntil,
    });
  const code = errorCode(message);
  if (code === 'WRONGTYPE' && keys !== undefined) return wrongType(keys.join(' or '), 'value of another type', server);
  if (code === 'NOTALOCK' && keys !== undefined) return notALock(keys[0], server, message);
  // An error reply means that the script did not start, unless it was sent twice. NOPERM can also occur in the
  // middle of a script.
  const answered = error instanceof ExpiredError || (delivery.isAnswer(error) && code !== 'NOPERM');
  const outcome = !delivery.written || (answered && !delivery.resent) ? 'refused' : 'unknown';
  // A password that was right before was changed, and will be right again: callers wait, as in any outage.
  const isRotated = delivery.wasServed && (code === 'WRONGPASS' || code === 'NOAUTH');
  const advice = isRotated ? PASSWORD_CHANGED : remedy(code, delivery, error);
  return new ServerError(server, because(message, advice), isRotated ? 'unavailable' : kindOf(code), outcome, {
    cause: withoutSecrets(error),
    validUntil: delivery.validUntil,
  });
}

/**
 * Records the failure of a call in the health of its node.
 *
 * @param failure the error for the caller
 * @param refused whether the node has answered with an error
 */
export function noteFailure(node: NodeHealth, failure: BackendError, refused: boolean): void {
  const { kind, message } = failure;
  if (kind === 'closed') return;
  // A server that does not know the user refuses every command, although nothing is wrong with the call.
  const isUnusable = kind === 'unavailable' || /\b(WRONGPASS|NOAUTH)\b/.test(message);
  // The logs name the server themselves.
  if (isUnusable) node.failed(refused, failure instanceof ServerError ? failure.reason : message);
  else node.answered(false);
}

/** The error of one request in a batch. Either its first command failed, or a later one failed with NOPERM. */
export function itemError(message: string, delivery: Delivery, server: string): BackendError {
  const code = errorCode(message);
  const outcome = code === 'NOPERM' || delivery.resent ? 'unknown' : 'refused';
  const { validUntil } = delivery;
  const reason = because(message, remedy(code, delivery, message));
  return new ServerError(server, reason, kindOf(code), outcome, { validUntil });
}

export function wrongType(key: string, found: string, server: string): BackendError {
  return new ServerError(
    server,
    `${key} is not a lock of this kind but a ${found}. Choose another lock name or keyPrefix, because something else uses this key, such as a semaphore`,
    'key',
    'refused',
  );
}

/** The error for a key that contains a hash or a sorted set of something else than owners. */
export function notALock(key: string, server: string, message: string): BackendError {
  const found = message.includes('sorted set') ? 'a sorted set with other members' : 'a hash with other fields';
  const reason = `${key} is not a lock but ${found}. Choose another lock name or keyPrefix`;
  return new ServerError(server, reason, 'key', 'refused');
}

const PASSWORD_CHANGED =
  'Redis accepted this user and password before: was the password changed? Restart this process with the new one, or let Redis accept both for a while: ACL SETUSER';

/** Our own connections leave a replica: see {@link ReplicaExit}. */
const REPLICA_OF_BORROWED =
  "the server is a replica, and only its owner may reconnect the client of the connection: set reconnectOnError: (error) => (error.message.includes('READONLY') ? 2 : false) in its options, or give RedisLockModule the options instead of the client";

function kindOf(code: string | undefined): BackendError['kind'] {
  if (DENIED.includes(code)) return 'denied';
  return code === 'WRONGTYPE' ? 'key' : 'unavailable';
}

function remedy(
  code: string | undefined,
  { isBorrowed, silenceAdvice, wasServed }: Delivery,
  error: unknown,
): string | undefined {
  if (code === 'READONLY' && isBorrowed) return REPLICA_OF_BORROWED;
  if (code === undefined && silenceAdvice !== undefined) return silenceAdvice; // commandTimeout of ioredis
  if (code === 'MOVED' || code === 'ASK' || code === 'CROSSSLOT') {
    return 'the server is a node of a cluster: give the connection as { nodes }';
  }
  if (code === 'WRONGPASS' || code === 'NOAUTH')
    return 'check the user and the password. Reserved characters in a URL must be percent-encoded';
  if (code === 'NOPERM') return 'docs/permissions.md has the permissions that locks need';
  return code === undefined || code === 'UNKNOWN' ? adviceFor(error, false, wasServed) : undefined;
}

/** What to do about a connection error; undefined if there is no advice. */
export function adviceFor(error: unknown, usesTls = false, wasServed = false): string | undefined {
  const { code = '' } = (error ?? {}) as { code?: string };
  return connectionAdvice(`${code} ${messageOf(error)}`, usesTls, wasServed);
}

/** The message of a connection error, with what to do about it. */
export function advised(error: unknown, usesTls: boolean, wasServed = false): string {
  const advice = adviceFor(error, usesTls, wasServed);
  const message = messageOf(error);
  return advice === undefined ? message : `${message.replace(/[.:]$/, '')}: ${advice}`;
}

/**
 * A connection error for logs, with the address, the reason and what to do. Both connections of a service log the same
 * text.
 */
export function explained(
  error: unknown,
  { description, usesTls }: Pick<Topology, 'description' | 'usesTls'>,
  wasServed = false,
): Error {
  const message = messageOf(error);
  const where = message.startsWith(description) ? '' : `${description}: `;
  if (error instanceof BackendError)
    return new BackendError(where + message, error.kind, error.outcome, { cause: error.cause });
  return new Error(where + advised(error, usesTls, wasServed), { cause: error });
}

/**
 * A copy without what ioredis attaches to its errors: the command, such as an AUTH with its password, or the keys of a
 * whole batch.
 */
export function withoutSecrets(error: unknown): Error {
  // A cluster client reports the reason in a property of the error.
  const { lastNodeError } = (error ?? {}) as { lastNodeError?: unknown };
  const reason = isError(lastNodeError) ? lastNodeError.message : undefined;
  const copy = new Error(because(messageOf(error), reason));
  if (!isError(error)) return copy;
  const { code } = (lastNodeError ?? error) as NodeJS.ErrnoException;
  copy.name = error.name;
  return code === undefined ? copy : Object.assign(copy, { code });
}

export function messageOf(error: unknown): string {
  // Those of OpenSSL end with a line break.
  return isError(error) ? error.message.trim() : String(error);
}

/** Also for errors of another realm. */
function isError(value: unknown): value is Error {
  return typeof (value as Partial<Error> | null | undefined)?.message === 'string';
}
