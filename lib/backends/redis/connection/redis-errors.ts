import { BackendError } from '../../lock-backend.js';

/** The connection option cannot be used; the message says why and what to do. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** The server refused a request because the time of its caller was over, twice in a row. */
export class ExpiredError extends Error {
  override readonly name = 'ExpiredError';

  constructor() {
    super(
      'the request reached the server after its time, twice in a row: the network is slow, or the clock of the server jumps',
    );
  }
}

/** A client that has ended answers nothing any more, however long one waits. */
export class EndedError extends Error {
  override readonly name = 'EndedError';

  /**
   * @param owned it is a client of ours
   * @param cause its last error, without secrets
   */
  constructor(owned: boolean, cause?: Error) {
    super(
      owned
        ? `ioredis has given this connection up, as its options say (retryStrategy, clusterRetryStrategy, sentinelRetryStrategy): let them return a number, or leave them out (${cause?.message ?? 'it was closed'})`
        : 'the ioredis client of the connection was closed by its owner (quit() or disconnect()): close the lock service first, or give it a connection of its own',
      { cause },
    );
  }
}

/** What is known of a command that failed. */
export interface Delivery {
  /** It left this process, at least once. */
  readonly written: boolean;
  /** It may have been executed by a server whose answer was lost. */
  readonly resent: boolean;
  /** Server time in ms after which it is not executed any more; undefined: it may always be. */
  readonly validUntil: number | undefined;
}

/** Reply codes at the start of Redis's messages; Redis 6 puts its own words before that of an error inside a script. */
const CODE = /\b(NOPERM|NOAUTH|WRONGPASS|WRONGTYPE|READONLY|TRYAGAIN|MOVED|ASK|CROSSSLOT)\b/;

/** Redis 7.0 has no code for what a script is not allowed: «The user executing the script can't run this command». */
const DENIED_IN_SCRIPT = /The user executing the script can't/;

export function errorCode(message: string): string | undefined {
  if (DENIED_IN_SCRIPT.test(message)) return 'NOPERM';
  return CODE.exec(message)?.[1] ?? (/unknown command/i.test(message) ? 'UNKNOWN' : undefined);
}

const DENIED: readonly (string | undefined)[] = ['NOPERM', 'NOAUTH', 'WRONGPASS', 'UNKNOWN'];

/** Errors of a call over several keys that one key alone may not have. */
const FOR_ONE_KEY: readonly (string | undefined)[] = ['NOPERM', 'TRYAGAIN', 'MOVED', 'ASK', 'CROSSSLOT'];

export function mayConcernOneKey(error: unknown): boolean {
  return FOR_ONE_KEY.includes(errorCode(messageOf(error)));
}

/** What a whole call failed with, as the engine is to see it. */
export function callError(error: unknown, delivery: Delivery, server: string, keys?: readonly string[]): BackendError {
  if (error instanceof BackendError) return error;
  const message = messageOf(error);
  if (error instanceof EndedError)
    return new BackendError(`${server}: ${message}`, 'closed', delivery.written ? 'unknown' : 'refused', {
      cause: error.cause,
      validUntil: delivery.validUntil,
    });
  const code = errorCode(message);
  if (code === 'WRONGTYPE' && keys !== undefined) return wrongType(keys.join(' or '), 'value of another type', server);
  // An error reply of Redis means that the script did not start, unless it was the second time; NOPERM may come in the middle of it.
  const answered = error instanceof ExpiredError || (isReply(error) && code !== 'NOPERM');
  const outcome = !delivery.written || (answered && !delivery.resent) ? 'refused' : 'unknown';
  return new BackendError(`${server}: ${message}${remedy(code)}`, kindOf(code), outcome, {
    cause: withoutSecrets(error),
    validUntil: delivery.validUntil,
  });
}

/** What one item of a call failed with. Its first command already failed, or it was a NOPERM. */
export function itemError(message: string, delivery: Delivery, server: string): BackendError {
  const code = errorCode(message);
  const outcome = code === 'NOPERM' || delivery.resent ? 'unknown' : 'refused';
  const { validUntil } = delivery;
  return new BackendError(`${server}: ${message}${remedy(code)}`, kindOf(code), outcome, { validUntil });
}

export function wrongType(key: string, found: string, server: string): BackendError {
  return new BackendError(
    `${server}: ${key} is no lock of this kind: a ${found} stands there. Choose another lock name or keyPrefix, or delete that key`,
    'key',
    'refused',
  );
}

function kindOf(code: string | undefined): BackendError['kind'] {
  if (DENIED.includes(code)) return 'denied';
  return code === 'WRONGTYPE' ? 'key' : 'unavailable';
}

function remedy(code: string | undefined): string {
  if (code === 'MOVED' || code === 'ASK' || code === 'CROSSSLOT') {
    return ' (the server is a node of a cluster: give the connection as { nodes })';
  }
  return code === 'NOPERM' ? ' (see the README for the rights that locks need)' : '';
}

/** ioredis hangs the command on its errors, or another error on them that has it: an AUTH with its password, the keys of a whole batch. */
export function withoutSecrets(error: unknown): Error {
  // A cluster says what is wrong beside the error.
  const { lastNodeError } = (error ?? {}) as { lastNodeError?: unknown };
  const reason = isError(lastNodeError) ? ` (${lastNodeError.message})` : '';
  const copy = new Error(messageOf(error) + reason);
  if (!isError(error)) return copy;
  const { code } = (lastNodeError ?? error) as NodeJS.ErrnoException;
  copy.name = error.name;
  return code === undefined ? copy : Object.assign(copy, { code });
}

export function messageOf(error: unknown): string {
  return isError(error) ? error.message : String(error);
}

/** Of this realm or of another one. */
function isError(value: unknown): value is Error {
  return typeof (value as Partial<Error> | null | undefined)?.message === 'string';
}

/** An answer of Redis to the script itself, and not to the handshake of a connection or from ioredis. */
function isReply(error: unknown): boolean {
  const command = (error as { command?: { name?: string } } | undefined)?.command?.name;
  return command === 'evalsha' || command === 'eval';
}
