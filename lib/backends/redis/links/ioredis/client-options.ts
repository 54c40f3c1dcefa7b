import type { RedisOptions } from 'ioredis';
import type { ConnectionContext } from '../connection-context.js';

/**
 * The longest pause between two attempts to connect, in milliseconds. ioredis pauses for up to five seconds by default,
 * which would delay locks after a short outage.
 */
const LONGEST_RETRY_DELAY = 1_000;
/** ioredis starts this timer even for a socket that is closed already, and the timer keeps the process alive. */
const DISCONNECT_TIMEOUT = 100;

/** Options of our own clients, unless the user sets them. */
export type ClientDefaults = Pick<
  RedisOptions,
  'retryStrategy' | 'socketTimeout' | 'disconnectTimeout' | 'maxLoadingRetryTime'
>;

export function clientDefaults({ runtime, commandTimeout }: ConnectionContext): ClientDefaults {
  return {
    retryStrategy: (times) => Math.min(50 * 2 ** (times - 1), LONGEST_RETRY_DELAY) + runtime.random() * 50,
    // No error reports a half-open connection. It is replaced when it leaves a command unanswered for this long.
    socketTimeout: commandTimeout,
    disconnectTimeout: DISCONNECT_TIMEOUT,
    // While a server loads its data, ioredis asks again after the server's estimate of the rest, up to ten seconds.
    maxLoadingRetryTime: LONGEST_RETRY_DELAY,
  };
}

/** A subscriber that loses its connection is not reconnected but replaced. */
export const SUBSCRIBER_OPTIONS: RedisOptions = {
  lazyConnect: true,
  autoResubscribe: false,
  enableOfflineQueue: true,
  readOnly: false,
  retryStrategy: () => null,
  disconnectTimeout: DISCONNECT_TIMEOUT,
};
